// Many seeds, what they met together, and whether that was enough to count.
#pragma once

#include "simulation/outcome.hpp"
#include "simulation/plan.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace stela::sim {

/// Runs one seed.
Outcome run(const Plan& plan);

struct Campaign {
  /// Of a thousand seeds and more: they must have been rich enough to mean something.
  bool demands = true;
  /// Backups are restored: only the model store can do that in the middle of a run.
  bool restores = true;
  std::uint64_t seeds = 0;
  /// Those that broke an invariant.
  std::vector<Plan> failed = {};
  /// Seeds whose second run wasn't the same as the first.
  std::vector<std::uint64_t> unstable = {};
  /// Seeds in which a partition changed hands and a fault hit something in flight.
  std::uint64_t eventful = 0;
  double seconds = 0;
  Time simulated = 0;
  std::int64_t appended = 0;
  std::int64_t stored = 0;
  std::int64_t faults = 0;
  /// The slowest and its seed.
  double recovery = 0;
  std::uint64_t slowest = 0;
  double worker_time = 0;
  double partition_time = 0;
  std::array<std::int64_t, row_count> rows = {};

  void add(const Plan& plan, const Outcome& outcome);
  double hours() const noexcept { return static_cast<double>(simulated) / (3'600.0 * second); }
};

/// Prints what was met. True if nothing broke, and if the runs were rich enough to mean something.
bool report(const Campaign& campaign);

/// The smallest plan found that still breaks an invariant as `plan` does.
Plan shrink(const Plan& plan);

}  // namespace stela::sim
