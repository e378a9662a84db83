// The problems of an outbox, and their remedies.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <string>
#include <vector>

namespace stela::tool {

struct Problem {
  Style style = Style::warning;
  /// Without control characters.
  std::string what = {};
  /// The command or the action that ends it.
  std::string remedy = {};
};

/// Worst first. Partitions with the same trouble are one problem.
std::vector<Problem> problems_of(const View& view);

/// "stopped: broker_lost". Empty if it has no trouble.
std::string trouble_of(const PartitionStatus& partition);
/// The style for the severity of its trouble. Plain if it has none.
Style style_of(const PartitionStatus& partition);

}  // namespace stela::tool
