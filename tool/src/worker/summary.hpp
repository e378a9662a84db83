// The boxes at the top of the dashboard: state, backlog and throughput.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstddef>

namespace stela::tool {

/// State and backlog of the worker and of all workers. With room, also latencies and ticks of this
/// process.
Block summary(const View& view, std::size_t width, bool is_roomy);

/// The width of the throughput box.
inline constexpr std::size_t throughput_width = 37;
/// Messages per second, and a curve of the last hour.
Block throughput(const View& view, std::size_t width);

/// For small terminals: the essentials, in as few lines as possible.
Block short_summary(const View& view, std::size_t width);

}  // namespace stela::tool
