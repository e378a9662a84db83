// Does harm to the world by a schedule that the seed draws, heals it, and lets it drain.
#pragma once

#include "chaos/faults.hpp"
#include "chaos/phases.hpp"
#include "chaos/settings.hpp"
#include "chaos/world.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stela::chaos {

class Orchestra {
 public:
  explicit Orchestra(const Settings& settings);

  /// False if it didn't drain in time; the world's `problems` say what else went wrong.
  bool play();
  /// The phase that the seed chose, if there is one.
  void play_phase();

  World& world() noexcept { return world_; }

 private:
  void strike();
  void heal();
  bool drain();
  std::int64_t waiting() const;
  std::int64_t deleted_unhandled() const;
  std::int64_t unreminded() const;

  const Settings& settings_;
  const std::optional<Phase> phase_;
  World world_;
  const std::vector<Fault> faults_;
};

}  // namespace stela::chaos
