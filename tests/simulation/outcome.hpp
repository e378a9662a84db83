// What came of a run, and what it has met on the way.
#pragma once

#include "simulation/plan.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stela::sim {

/// The rows of the two answer tables in docs/relay.md: what a relay can be told, and what it can
/// find when it looks.
enum class Row : std::uint8_t {
  ack,
  duplicate,
  wrong_sequence,
  wrong_id,
  timed_out,
  disconnected,
  late_reply,
  refused,
  rejected,
  full,
  misconfigured,
  found_ours,
  found_nothing_new,
  found_aged_out,
  unreadable,
  broker_lost,
  store_went_back,
  foreign_writer,
  count,
};

inline constexpr auto row_count = static_cast<std::size_t>(Row::count);

std::string_view to_string(Row row) noexcept;

struct Outcome {
  std::optional<Violation> violation = {};
  Time simulated = 0;
  std::uint64_t hash = 0;
  std::int64_t appended = 0;
  std::int64_t stored = 0;
  std::int64_t faults = 0;
  /// Faults that only an operator can repair.
  std::int64_t disasters = 0;
  /// How often a partition changed hands, and how often a fault hit something in flight.
  std::int64_t lease_changes = 0;
  std::int64_t publishing_faults = 0;
  /// The part of the bound that was needed until everything was through after the last fault.
  double recovery = 0;
  /// The sums over time, for means: workers alive and partitions, times microseconds.
  double worker_time = 0;
  double partition_time = 0;
  /// Where a scripted fault could have struck: as long as something is to be published.
  std::vector<Opportunity> opportunities = {};
  std::array<std::int64_t, row_count> rows = {};
};

}  // namespace stela::sim
