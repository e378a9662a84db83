// Runs the relay's real core against simulated clocks, stores and brokers, and processes that
// decide, that set timers, or that consume. See docs/relay.md.
#include "simulation/campaign.hpp"
#include "simulation/exhaustive.hpp"
#include "simulation/mutants.hpp"
#include "simulation/story.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace stela::sim;
using stela::mutants::Mutant;

namespace {

constexpr std::string_view usage = R"(usage: stela_sim [--seeds N] [--start S] [--seed S [--trace]]
  --seeds N      runs N seeds (1000)
  --start S      from this one on (1)
  --seed S       runs this one
  --partitions N each with this many partitions
  --calm         nothing goes wrong but single streams
  --trace        prints everything that happens in it
  --shrink       looks for the smallest plan that breaks the same invariant
  --sqlite       on SQLite in memory, compared with the model store step by step
  --mutant M     with a relay that has this fault
  --mutants      looks whether each mutant is found
  --decisions    processes that decide, instead of relays; with the options above but --partitions,
                 --calm, --shrink and --sqlite
  --timers       processes that set timers, and runners that fire them; with the same options
  --consumers    consumers that follow JetStream streams; with the same options
  --exhaustive N two workers, two events, and every way to place at most N faults
  --faults A,B   with --exhaustive: no other faults than these
)";

struct Options {
  std::uint64_t seeds = 1'000;
  std::uint64_t start = 1;
  int partitions = 0;
  bool calm = false;
  bool trace = false;
  bool shrink = false;
  bool sqlite = false;
  bool mutants = false;
  const StoryKind* story = nullptr;
  std::size_t exhaustive = 0;
  std::vector<ScriptedFault::Kind> faults = {};
  Mutant mutant = Mutant::none;
};

std::vector<ScriptedFault::Kind> parse_faults(const std::string& names) {
  std::vector<ScriptedFault::Kind> faults;
  std::istringstream rest{names};
  for (std::string name; std::getline(rest, name, ',');) {
    bool known = false;
    for (int i = 0; i <= static_cast<int>(ScriptedFault::Kind::refuse); ++i) {
      const auto kind = static_cast<ScriptedFault::Kind>(i);
      if (to_string(kind) != name) continue;
      faults.push_back(kind);
      known = true;
    }
    if (!known) throw std::invalid_argument{"there is no fault '" + name + "'"};
  }
  return faults;
}

std::uint64_t parse_number(const std::string& text) {
  std::size_t end = 0;
  const std::uint64_t number = std::stoull(text, &end);
  if (end != text.size()) throw std::invalid_argument{"'" + text + "' isn't a number"};
  return number;
}

int parse_partitions(const std::string& text) {
  const std::uint64_t number = parse_number(text);
  if (number < 1 || number > 256) throw std::invalid_argument{"there are 1 to 256 partitions"};
  return static_cast<int>(number);
}

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string_view, std::function<void(const std::string&)>> with_value{
      {"--seeds", [&](const auto& v) { options.seeds = parse_number(v); }},
      {"--start", [&](const auto& v) { options.start = parse_number(v); }},
      {"--seed",
       [&](const auto& v) {
         options.start = parse_number(v);
         options.seeds = 1;
       }},
      {"--partitions", [&](const auto& v) { options.partitions = parse_partitions(v); }},
      {"--exhaustive", [&](const auto& v) { options.exhaustive = parse_number(v); }},
      {"--faults", [&](const auto& v) { options.faults = parse_faults(v); }},
      {"--mutant", [&](const auto& v) { options.mutant = stela::mutants::mutant_named(v); }}};
  const std::map<std::string_view, bool*> flags{{"--calm", &options.calm},
                                                {"--trace", &options.trace},
                                                {"--shrink", &options.shrink},
                                                {"--sqlite", &options.sqlite},
                                                {"--mutants", &options.mutants}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
    } else if (name == "--decisions") {
      options.story = &decisions;
    } else if (name == "--timers") {
      options.story = &timers;
#ifdef STELA_WITH_NATS
    } else if (name == "--consumers") {
      options.story = &consumers;
#endif
    } else if (const auto option = with_value.find(name);
               option != with_value.end() && i + 1 < argc) {
      option->second(argv[++i]);
    } else {
      throw std::invalid_argument{"'" + std::string{name} + "' isn't an option"};
    }
  }
  return options;
}

void tell(const Plan& plan, const Outcome& outcome) {
  std::printf(
      "seed %llu (%s, %d workers, %d partitions, %lld ms away, %lld bytes a second, "
      "%lld faults): invariant %d: %s\n",
      static_cast<unsigned long long>(plan.seed), std::string{stela::to_string(plan.fence)}.c_str(),
      plan.workers, plan.partitions, static_cast<long long>(plan.line.round_trip / ms),
      static_cast<long long>(plan.line.bandwidth), static_cast<long long>(outcome.faults),
      outcome.violation->invariant, outcome.violation->what.c_str());
}

int simulate(const Options& options) {
  Campaign campaign{.demands = !options.calm && options.partitions == 0,
                    .restores = !options.sqlite};
  // Of one core: the machine may be busy with other things.
  const std::clock_t begun = std::clock();
  for (std::uint64_t seed = options.start; seed < options.start + options.seeds; ++seed) {
    Plan plan = options.calm ? Plan::draw_calm(seed) : Plan::draw(seed);
    if (options.partitions > 0) plan.spread_over(options.partitions);
    plan.trace = options.trace;
    plan.sqlite = options.sqlite;
    plan.restore = plan.restore && campaign.restores;
    plan.mutant = options.mutant;
    const Outcome outcome = run(plan);
    campaign.add(plan, outcome);
    if (outcome.violation) tell(plan, outcome);
    if (outcome.violation && options.shrink) {
      Plan smallest = shrink(plan);
      smallest.trace = true;
      tell(smallest, run(smallest));
    }
    if (seed % 100 == 0 && run(plan).hash != outcome.hash) campaign.unstable.push_back(seed);
  }
  campaign.seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  return report(campaign) ? 0 : 1;
}

bool tell(const StoryKind& kind, const Options& options) {
  constexpr double seconds_for_a_mutant = 60;
  const bool is_of_relays = options.calm || options.shrink || options.sqlite ||
                            options.partitions > 0 || options.exhaustive > 0;
  if (is_of_relays) throw std::invalid_argument{"that option is for relays"};
  if (options.mutants) return find_mutants(kind, seconds_for_a_mutant);
  return tell_stories(kind,
                      {.seed = options.start, .mutant = options.mutant, .trace = options.trace},
                      options.seeds);
}

int try_everything(const Options& options) {
  SmallWorld world{
      .mutant = options.mutant, .most_faults = options.exhaustive, .faults = options.faults};
  Exploration found;
  for (const stela::Fence fence : {stela::Fence::stream, stela::Fence::subject}) {
    world.fence = fence;
    Exploration explored = explore(world);
    found.runs += explored.runs;
    found.broken = std::move(explored.broken);
    if (found.broken) break;
  }
  std::printf("%lld ways to place at most %zu faults, %s\n", static_cast<long long>(found.runs),
              world.most_faults, found.broken ? "and one breaks an invariant" : "no violation");
  if (!found.broken) return 0;
  for (const ScriptedFault& fault : found.broken->script) {
    std::printf("  %s at opportunity %zu\n", std::string{to_string(fault.kind)}.c_str(), fault.at);
  }
  found.broken->trace = options.trace;
  tell(*found.broken, run(*found.broken));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    // Whoever reads it in a file sees how far it is, too.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    constexpr double seconds_for_a_mutant = 60;
    if (options.story != nullptr) return tell(*options.story, options) ? 0 : 1;
    if (options.mutants) return find_mutants(seconds_for_a_mutant) ? 0 : 1;
    if (options.exhaustive > 0) return try_everything(options);
    return simulate(options);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "stela_sim: %s\n%s", e.what(), std::string{usage}.c_str());
    return 2;
  }
}
