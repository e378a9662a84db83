// The dashboard's layout as lines of text, independent of a terminal.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace stela::tool {

struct Frame {
  /// At most `size.height` lines of at most `size.width` columns, without control characters.
  std::vector<Line> lines = {};
  /// The actual scroll position, limited to the end.
  std::size_t scroll = 0;
  /// The number of lines in a page of scrolling.
  std::size_t page = 0;
};

/// Summary and throughput have fixed places: one below the other, from 80 columns on side by side,
/// and from 160 on with the workers as the third. The rest scrolls: problems with their remedies,
/// partitions, workers, recent errors. Each has the full width, and more columns on wider
/// terminals. On small terminals (fewer than 60 columns or 14 lines) the summary is shorter and
/// scrolls too. Numbers from a database that doesn't answer are dim.
Frame lay_out(const View& view, const Looks& looks, Size size);

/// The state in a word: "connecting", "relaying", "idle", "standby" (others hold the partitions),
/// "stopped" (all of them wait for an operator), "draining", "broker down", "misconfigured" (the
/// broker answers, but is set up for none of the messages), "database down" (it doesn't answer, or
/// takes no writes).
std::string state_of(const Figures& done, const OutboxStatus& status, bool draining,
                     bool is_down = false);

}  // namespace stela::tool
