#include "simulation/exhaustive.hpp"

#include "simulation/campaign.hpp"

#include <algorithm>
#include <span>

namespace stela::sim {
namespace {

using Kind = ScriptedFault::Kind;

std::span<const Kind> kinds_at(Opportunity opportunity) {
  static constexpr Kind at_calls[] = {Kind::kill, Kind::pause};
  static constexpr Kind at_answers[] = {Kind::lose_reply, Kind::cut};
  static constexpr Kind at_messages[] = {Kind::late_bytes, Kind::lost_bytes, Kind::refuse};
  switch (opportunity) {
    case Opportunity::call:
      return at_calls;
    case Opportunity::answer:
      return at_answers;
    case Opportunity::message:
      return at_messages;
  }
  return {};
}

class Explorer {
 public:
  explicit Explorer(const SmallWorld& world) : world_{world} {}

  void explore(const Plan& plan) {
    const Outcome outcome = run(plan);
    ++result.runs;
    if (outcome.violation) {
      result.broken = plan;
      return;
    }
    if (plan.script.size() == world_.most_faults) return;
    const std::size_t first = plan.script.empty() ? 0 : plan.script.back().at + 1;
    for (std::size_t at = first; at < outcome.opportunities.size(); ++at) {
      for (const Kind kind : kinds_at(outcome.opportunities[at])) {
        const auto& wanted = world_.faults;
        const bool is_wanted =
            wanted.empty() || std::find(wanted.begin(), wanted.end(), kind) != wanted.end();
        if (!is_wanted) continue;
        Plan next = plan;
        next.script.push_back({at, kind});
        explore(next);
        if (result.broken) return;
      }
    }
  }

  Exploration result;

 private:
  const SmallWorld& world_;
};

}  // namespace

Exploration explore(const SmallWorld& world) {
  Explorer explorer{world};
  // Seeds differ in the order of the broker's checks, in batches and windows.
  for (std::uint64_t seed = 1; seed <= 16 && !explorer.result.broken; ++seed) {
    explorer.explore({.seed = seed,
                      .mutant = world.mutant,
                      .fence = world.fence,
                      .workers = 2,
                      .partitions = 1,
                      .streams = 1,
                      .faults_until = 60 * second,
                      .events = world.events});
  }
  return explorer.result;
}

}  // namespace stela::sim
