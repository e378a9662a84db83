// stela_sim --seeds N [--start S] | --seed S [--trace]
#include "simulation/simulation.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace stela::sim;

int main(int argc, char** argv) {
  std::uint64_t seeds = 100;
  std::uint64_t start = 1;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--seeds") == 0)
      seeds = value();
    else if (std::strcmp(argv[i], "--start") == 0)
      start = value();
    else if (std::strcmp(argv[i], "--seed") == 0) {
      start = value();
      seeds = 1;
    } else if (std::strcmp(argv[i], "--trace") == 0)
      trace = true;
  }
  const auto begun = std::chrono::steady_clock::now();
  Time simulated = 0;
  std::int64_t appended = 0, stored = 0, faults = 0;
  int violations = 0;
  for (std::uint64_t seed = start; seed < start + seeds; ++seed) {
    Plan plan = Plan::draw(seed);
    plan.trace = trace;
    Simulation simulation{plan};
    const Outcome outcome = simulation.run();
    simulated += outcome.simulated;
    appended += outcome.appended;
    stored += outcome.stored;
    faults += outcome.faults;
    if (outcome.violation) {
      ++violations;
      std::printf("seed %llu: invariant %d: %s\n", (unsigned long long)seed,
                  outcome.violation->invariant, outcome.violation->what.c_str());
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf(
      "%llu seeds, %d violations, %.2f simulated hours, %lld appended, %lld stored, %lld faults, "
      "%.1f simulated hours a second\n",
      (unsigned long long)seeds, violations, (double)simulated / 3.6e9, (long long)appended,
      (long long)stored, (long long)faults, (double)simulated / 3.6e9 / seconds);
  return violations == 0 ? 0 : 1;
}
