#include "simulation/mutants.hpp"

#include "simulation/campaign.hpp"

#include <cstdio>
#include <ctime>
#include <string>

namespace stela::sim {

namespace {

constexpr std::uint32_t all_kinds = UINT32_MAX;

constexpr std::uint32_t only(Fault fault) {
  return std::uint32_t{1} << static_cast<std::uint32_t>(fault);
}

/// Many partitions, and a broker that is far away.
Plan draw_far_and_wide(std::uint64_t seed) {
  Plan plan = Plan::draw_calm(seed);
  plan.spread_over(256);
  plan.line = {.round_trip = 100 * ms};
  return plan;
}

struct Case {
  Mutant mutant;
  int invariant;
  Fence fence;
  std::uint32_t kinds = all_kinds;
  Plan (*draw)(std::uint64_t seed) = Plan::draw;
};

constexpr Case cases[] = {
    {Mutant::skip_failed_row, 6, Fence::stream},
    {Mutant::no_sort, 6, Fence::stream},
    {Mutant::empty_list_means_all, 3, Fence::stream},
    {Mutant::mark_before_ack, 5, Fence::stream},
    {Mutant::mark_on_timeout, 5, Fence::stream},
    {Mutant::no_epoch_in_mark, 3, Fence::stream},
    {Mutant::no_read_back_at_acquisition, 7, Fence::stream},
    {Mutant::dedup_only, 7, Fence::stream},
    {Mutant::fence_on_wrong_sequence, 11, Fence::stream},
    {Mutant::no_park_behind, 8, Fence::stream},
    {Mutant::drop_after_three_attempts, 5, Fence::stream},
    // A fence shrugs it off; without one the copies are more than the faults account for.
    {Mutant::reconnect_buffer, 7, Fence::none, only(Fault::broker_down)},
    {Mutant::enqueue_after_commit, 1, Fence::stream},
    {Mutant::replay_flag_left_on, 1, Fence::stream},
    {Mutant::session_ends_on_miss, 12, Fence::stream, all_kinds, Plan::draw_calm},
    {Mutant::no_retry_after_miss, 11, Fence::stream, only(Fault::stream_out)},
    {Mutant::read_backs_one_by_one, 12, Fence::stream, all_kinds, draw_far_and_wide},
};

bool find(const Case& wanted, double seconds) {
  const std::string name{to_string(wanted.mutant)};
  const std::clock_t begun = std::clock();
  const auto spent = [&] { return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC; };
  for (std::uint64_t seed = 1; spent() < seconds; ++seed) {
    Plan plan = wanted.draw(seed);
    plan.fence = wanted.fence;
    plan.kinds = wanted.kinds;
    plan.restore = plan.restore && plan.fence != Fence::none;
    plan.mutant = wanted.mutant;
    const auto violation = run(plan).violation;
    if (!violation || violation->invariant != wanted.invariant) continue;
    plan.mutant = Mutant::none;
    if (const auto without = run(plan).violation) {
      std::printf("%-28s seed %llu breaks invariant %d without it, too: %s\n", name.c_str(),
                  static_cast<unsigned long long>(seed), without->invariant, without->what.c_str());
      return false;
    }
    std::printf("%-28s found by invariant %2d at seed %llu: %s\n", name.c_str(), wanted.invariant,
                static_cast<unsigned long long>(seed), violation->what.c_str());
    return true;
  }
  std::printf("%-28s NOT FOUND by invariant %d in %.0f s\n", name.c_str(), wanted.invariant,
              seconds);
  return false;
}

}  // namespace

bool find_mutants(double seconds) {
  bool all = true;
  for (const Case& wanted : cases) all = find(wanted, seconds) && all;
  return all;
}

}  // namespace stela::sim
