// A world small enough to try everything in it.
#pragma once

#include "simulation/plan.hpp"

#include <optional>
#include <vector>

namespace stela::sim {

/// Two workers, one partition, a few events, at most so many faults.
struct SmallWorld {
  Mutant mutant = Mutant::none;
  Fence fence = Fence::stream;
  std::int64_t events = 2;
  std::size_t most_faults = 2;
  /// If there are any: no others than these.
  std::vector<ScriptedFault::Kind> faults = {};
};

struct Exploration {
  std::int64_t runs = 0;
  /// The first that broke an invariant.
  std::optional<Plan> broken = {};
};

/// Tries every fault at every place where it can strike.
Exploration explore(const SmallWorld& world);

}  // namespace stela::sim
