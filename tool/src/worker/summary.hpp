// The boxes at the top of the dashboard: state and backlog, and how fast they change.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstddef>

namespace stela::tool {

/// State and backlog, of the worker and of all; where there is room, latencies and ticks of this
/// process.
Block summary(const View& view, std::size_t width, bool is_roomy);

/// What the box of the throughput needs.
inline constexpr std::size_t throughput_width = 37;
/// Messages a second, and the last hour.
Block throughput(const View& view, std::size_t width);

/// Where there is little room: what an operator must know, in as few lines as can be.
Block short_summary(const View& view, std::size_t width);

}  // namespace stela::tool
