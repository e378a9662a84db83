// The faults that a run is made of.
#pragma once

#include "chaos/world.hpp"

#include <string_view>
#include <vector>

namespace stela::chaos {

struct Fault {
  std::string_view kind;
  /// How often it is drawn, compared with the others.
  int weight;
  /// Does the harm, and sees to it that it is undone. What can't be done now isn't done.
  void (*strike)(World& world);
  /// Null, or whether the world of a seed has it.
  bool (*is_in)(const Settings& settings) = nullptr;
};

std::vector<Fault> process_faults();
std::vector<Fault> network_faults();
std::vector<Fault> broker_faults();
std::vector<Fault> database_faults();
/// Of the server, of the ways to it, and of its standby.
std::vector<Fault> postgres_faults();
std::vector<Fault> clock_faults();

/// All of them, always in the same order.
std::vector<Fault> all_faults();

/// To the number of partitions that the settings name; later if it can't be done now.
void resize(World& world);
/// Copies the database, as it is under load; later if it can't be done now.
void back_up(World& world);

}  // namespace stela::chaos
