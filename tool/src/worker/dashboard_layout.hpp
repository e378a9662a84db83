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

/// Boxes with fixed places: summary and throughput, under each other, or from 80 columns on beside
/// each other, from 160 on with the workers as the third. What follows is scrolled: problems with
/// their remedies, partitions, workers, recent errors, each over the full width, with more columns
/// the wider it is. Where there is little room (fewer than 60 columns or 14 lines) the summary is
/// shorter, and scrolled too. Numbers of a database that doesn't answer are dim.
Frame lay_out(const View& view, const Looks& looks, Size size);

/// The state in a word, from what is known: "connecting", "relaying", "idle", "standby" (others
/// hold the partitions), "stopped" (all of them wait for an operator), "draining", "broker down",
/// "misconfigured" (the broker is there, and set up for none of what is to be published), "database
/// down" (it doesn't answer, or takes no writes).
std::string state_of(const Figures& done, const OutboxStatus& status, bool draining,
                     bool is_down = false);

}  // namespace stela::tool
