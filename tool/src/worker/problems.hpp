// What is wrong with an outbox, and what to do about it.
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
  /// The command or the deed that ends it.
  std::string remedy = {};
};

/// The worst first. Partitions with the same trouble are one problem.
std::vector<Problem> problems_of(const View& view);

/// "stopped: broker_lost"; empty if it is well.
std::string trouble_of(const PartitionStatus& partition);
/// How bad its trouble is; plain if it is well.
Style style_of(const PartitionStatus& partition);

}  // namespace stela::tool
