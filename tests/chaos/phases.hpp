// What happens to a database or a broker as a whole: after the faults, with the way back that the
// documentation advises.
#pragma once

#include "chaos/world.hpp"

#include <string_view>
#include <vector>

namespace stela::chaos {

struct Phase {
  std::string_view kind;
  /// It needs the backup that is made in the middle of the run.
  bool is_of_copies;
  /// Whether the world of these settings has it.
  bool (*is_in)(const Settings& settings);
  /// Nobody but the phase works on the databases meanwhile. What doesn't hold becomes a problem of
  /// the world's.
  void (*play)(World& world);
};

/// The stream of events goes on in a copy of the database, too.
void clone_database(World& world);
/// The database is replaced by an older copy of itself.
void restore_database(World& world);
/// The standby takes the server's place, and lacks commits that were answered.
void fail_over(World& world);
/// The broker loses its streams.
void empty_broker(World& world);

/// The disk of the broker's streams is full.
void fill_broker_disk(World& world);

std::vector<Phase> all_phases();

}  // namespace stela::chaos
