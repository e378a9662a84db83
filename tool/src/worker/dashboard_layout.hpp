// The dashboard as lines of text: what stands where, without a terminal.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace stela::tool {

struct Frame {
  /// At most `size.height` of at most `size.width` columns, without a control character.
  std::vector<Line> lines = {};
  /// How far it is scrolled: as far as asked for, and no further than to the end.
  std::size_t scroll = 0;
  /// How many lines are scrolled at once by a page.
  std::size_t page = 0;
};

/// Summary, problems with their remedies, partitions, recent errors: over the full width, with more
/// columns the wider it is. What doesn't fit is reached by scrolling. Where there is little room
/// (fewer than 60 columns or 14 lines) the summary is shorter, and scrolled too.
Frame lay_out(const View& view, const Looks& looks, Size size);

/// The state in a word, from what is known: "connecting", "relaying", "idle", "standby" (others
/// hold the partitions), "stopped" (all of them wait for an operator), "draining", "broker down",
/// "misconfigured" (the broker is there, and not set up for all that is to be published).
std::string state_of(const Figures& done, const OutboxStatus& status, bool draining);

}  // namespace stela::tool
