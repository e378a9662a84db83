// The partitions and the workers as rows of the dashboard.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

/// Whether a worker of that name runs in this process.
bool is_own(const OwnWork& own, std::string_view worker);

/// The share of the partitions, as far as this process has it.
Block own_share(const View& view, std::size_t width);

/// How many partitions are at work: current ones, and those that aren't drained.
std::int64_t needed_partitions(const OutboxStatus& status);

struct PartitionRows {
  /// What the columns are called.
  Line titles = {};
  /// Those in trouble, or with parked messages.
  Block troubled = {};
  /// The others: nothing is wrong with themselves.
  Block healthy = {};
  /// A line for all healthy ones, and one for those that wait for the same.
  Block healthy_in_short = {};
};

/// As the filter and the sort key want it. A column that is shown is also shown where there is more
/// width.
PartitionRows partition_rows(const View& view, const Looks& looks, std::size_t width);

std::string_view name_of(SortKey key) noexcept;

/// Titles, and a row for each worker, those in trouble first: at most so many lines.
Block worker_rows(const View& view, const std::string& filter, std::size_t width, std::size_t most);

}  // namespace stela::tool
