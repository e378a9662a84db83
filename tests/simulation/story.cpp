#include "simulation/story.hpp"

#include <cstdio>
#include <ctime>

namespace stela::sim {
namespace {

double seconds_since(std::clock_t begun) {
  return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
}

void tell(std::uint64_t seed, const char* what) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), what);
}

bool find_story_mutant(const StoryKind& kind, const StoryMutant& wanted, double seconds) {
  const std::string name{to_string(wanted.mutant)};
  const std::clock_t begun = std::clock();
  for (std::uint64_t seed = wanted.seed; seconds_since(begun) < seconds; ++seed) {
    const Story story = kind.run({.seed = seed, .mutant = wanted.mutant});
    if (story.contradiction.find(wanted.contradiction) == std::string::npos) continue;
    const Story without = kind.run({.seed = seed});
    std::printf("%-28s found at seed %llu: %s\n", name.c_str(),
                static_cast<unsigned long long>(seed), story.contradiction.c_str());
    if (!without.contradiction.empty()) tell(seed, "breaks without it, too");
    return without.contradiction.empty();
  }
  std::printf("%-28s NOT FOUND in %.0f s\n", name.c_str(), seconds);
  return false;
}

}  // namespace

bool tell_stories(const StoryKind& kind, StoryPlan plan, std::uint64_t seeds) {
  const std::clock_t begun = std::clock();
  bool held = true;
  std::map<std::string_view, std::int64_t> met;
  for (const std::uint64_t end = plan.seed + seeds; plan.seed < end; ++plan.seed) {
    const Story story = kind.run(plan);
    for (const auto& [what, times] : story.met) met[what] += times;
    if (!story.contradiction.empty()) tell(plan.seed, story.contradiction.c_str());
    const bool is_stable = plan.seed % 25 != 0 || kind.run(plan).hash == story.hash;
    if (!is_stable) tell(plan.seed, "isn't the same twice");
    held = held && is_stable && story.contradiction.empty();
  }
  std::printf("%llu seeds in %.1f s, %s\n", static_cast<unsigned long long>(seeds),
              seconds_since(begun), held ? "no contradiction" : "with contradictions");
  for (const auto& [what, times] : met) {
    std::printf("  %-36s %12lld\n", std::string{what}.c_str(), static_cast<long long>(times));
  }
  if (seeds < 100) return held;
  for (const std::string_view what : kind.demands) {
    if (met[what] > 0) continue;
    std::printf("  NOT MET: %s\n", std::string{what}.c_str());
    held = false;
  }
  return held;
}

bool find_mutants(const StoryKind& kind, double seconds) {
  bool all = true;
  for (const StoryMutant& wanted : kind.mutants)
    all = find_story_mutant(kind, wanted, seconds) && all;
  return all;
}

}  // namespace stela::sim
