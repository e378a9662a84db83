// The partitions as rows of the dashboard.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

/// How many partitions are at work: current ones, and those that aren't drained.
std::int64_t needed_partitions(const OutboxStatus& status);

struct PartitionRows {
  /// What the columns are called.
  Line titles = {};
  /// Those in trouble, or with parked messages.
  Block troubled = {};
  Block healthy = {};
  /// All healthy ones in a line; empty if there is none.
  Line healthy_in_short = {};
};

/// As the filter and the sort key want it. A column that is shown is also shown where there is more
/// width.
PartitionRows partition_rows(const View& view, const Looks& looks, std::size_t width);

std::string_view name_of(SortKey key) noexcept;

}  // namespace stela::tool
