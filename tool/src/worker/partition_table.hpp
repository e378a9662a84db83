// Partitions and workers as rows of the dashboard.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

/// True if a worker of that name runs in this process.
bool is_own(const OwnWork& own, std::string_view worker);

/// The share of the partitions that this process has, as a block.
Block own_share(const View& view, std::size_t width);

/// The number of active partitions: current ones, and those that aren't drained.
std::int64_t needed_partitions(const OutboxStatus& status);

struct PartitionRows {
  /// The titles of the columns.
  Line titles = {};
  /// Partitions in trouble, or with parked messages.
  Block troubled = {};
  /// Partitions without trouble of their own.
  Block healthy = {};
  /// One line for all healthy partitions, and one for those that wait for the same thing.
  Block healthy_in_short = {};
};

/// Filtered and sorted as chosen. A wider table keeps every column of a narrower one.
PartitionRows partition_rows(const View& view, const Looks& looks, std::size_t width);

std::string_view name_of(SortKey key) noexcept;

/// Titles, and a row for each worker, those in trouble first: at most this many lines.
Block worker_rows(const View& view, const std::string& filter, std::size_t width, std::size_t most);

}  // namespace stela::tool
