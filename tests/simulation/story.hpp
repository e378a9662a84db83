// Small worlds around real stores, judged by their events when everything is over.
#pragma once

#include "mutants/mutant.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace stela::sim {

struct StoryPlan {
  std::uint64_t seed = 0;
  mutants::Mutant mutant = mutants::Mutant::none;
  bool trace = false;
};

struct Story {
  /// Empty, or what is wrong with the history.
  std::string contradiction = {};
  std::uint64_t hash = 0;
  /// What happened, and how often.
  std::map<std::string_view, std::int64_t> met = {};
};

/// A mutant of a world, and a part of the contradiction by which it must be found.
struct StoryMutant {
  mutants::Mutant mutant;
  std::string_view contradiction;
  /// Where the search begins: a seed that finds it, or one shortly before it.
  std::uint64_t seed = 1;
};

struct StoryKind {
  Story (*run)(const StoryPlan& plan);
  /// Each must have happened, in a hundred seeds and more.
  std::span<const std::string_view> demands;
  std::span<const StoryMutant> mutants;
};

/// Processes that decide on overlapping boundaries.
extern const StoryKind decisions;
/// Processes that set timers, and runners that fire them.
extern const StoryKind timers;
/// Consumers that follow JetStream streams; only where Stela is built with NATS.
extern const StoryKind consumers;

/// Runs `seeds` of them from `start` on. Prints what was met; true if nothing broke.
bool tell_stories(const StoryKind& kind, StoryPlan plan, std::uint64_t seeds);
/// True if each mutant is found, and by its contradiction.
bool find_mutants(const StoryKind& kind, double seconds);

}  // namespace stela::sim
