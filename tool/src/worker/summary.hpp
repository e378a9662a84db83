// The lines at the top of the dashboard: state, backlog, what this process did.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstddef>

namespace stela::tool {

/// In as many lines as it takes; where there are few, without the particulars of this process.
Block summary(const View& view, std::size_t width, std::size_t height);

/// Where there is little room: what an operator must know, in as few lines as can be.
Block short_summary(const View& view, std::size_t width);

}  // namespace stela::tool
