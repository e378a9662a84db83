#include "simulation/campaign.hpp"

#include "simulation/simulation.hpp"

#include <bit>
#include <cstdio>

namespace stela::sim {

Outcome run(const Plan& plan) {
  Simulation simulation{plan};
  return simulation.run();
}

void Campaign::add(const Plan& plan, const Outcome& outcome) {
  ++seeds;
  if (outcome.violation) failed.push_back(plan);
  if (outcome.lease_changes > 0 && outcome.publishing_faults > 0) ++eventful;
  simulated += outcome.simulated;
  appended += outcome.appended;
  stored += outcome.stored;
  faults += outcome.faults;
  if (!outcome.violation && outcome.recovery > recovery) {
    recovery = outcome.recovery;
    slowest = plan.seed;
  }
  worker_time += outcome.worker_time;
  partition_time += outcome.partition_time;
  for (std::size_t i = 0; i < row_count; ++i) rows[i] += outcome.rows[i];
}

namespace {

struct Demand {
  const char* what;
  double is;
  double at_least;
};

bool meets(const Demand& demand) {
  const bool met = demand.is >= demand.at_least;
  std::printf("  %-36s %12.1f   at least %g%s\n", demand.what, demand.is, demand.at_least,
              met ? "" : "   NOT MET");
  return met;
}

}  // namespace

bool report(const Campaign& campaign) {
  const double hours = campaign.hours();
  const double time = static_cast<double>(campaign.simulated);
  const auto of_seeds = static_cast<double>(campaign.seeds);
  std::printf("%llu seeds, %zu violations, %.1f simulated hours, %.1f of them a second\n",
              static_cast<unsigned long long>(campaign.seeds), campaign.failed.size(), hours,
              hours / campaign.seconds);
  std::printf("seed %llu needed the largest part of its time to recover, %.0f %%\n",
              static_cast<unsigned long long>(campaign.slowest), 100 * campaign.recovery);
  for (const std::uint64_t seed : campaign.unstable) {
    std::printf("  seed %llu isn't the same twice\n", static_cast<unsigned long long>(seed));
  }
  const bool held = campaign.failed.empty() && campaign.unstable.empty();
  if (campaign.seeds < 1'000 || !campaign.demands) return held;

  bool rich = true;
  const Demand demands[] = {
      {"events appended a second", static_cast<double>(campaign.appended) / (hours * 3'600), 2},
      {"partitions, in the mean", campaign.partition_time / time, 16},
      {"workers, in the mean", campaign.worker_time / time, 4},
      {"faults an hour", static_cast<double>(campaign.faults) / hours, 60},
      {"% of seeds with a change of lease and a fault in a publish",
       100 * static_cast<double>(campaign.eventful) / of_seeds, 95},
  };
  for (const Demand& demand : demands) rich = meets(demand) && rich;
  std::printf("how often each row of the answer tables was met, in 5000 seeds:\n");
  for (std::size_t i = 0; i < row_count; ++i) {
    const double met = static_cast<double>(campaign.rows[i]) * 5'000 / of_seeds;
    const auto row = static_cast<Row>(i);
    const double at_least = row == Row::store_went_back && !campaign.restores ? 0 : 100;
    rich = meets({to_string(row).data(), met, at_least}) && rich;
  }
  return held && rich;
}

Plan shrink(const Plan& plan) {
  const auto breaks = [wanted = run(plan).violation](const Plan& candidate) {
    const auto violation = run(candidate).violation;
    return violation && wanted && violation->invariant == wanted->invariant;
  };
  Plan smallest = plan;
  const auto try_with = [&](auto&& change) {
    Plan candidate = smallest;
    change(candidate);
    if (breaks(candidate)) smallest = candidate;
  };
  // Whole kinds of faults first, then the last of those that are left, then the cast.
  for (std::uint32_t kind = 0; kind < static_cast<std::uint32_t>(Fault::count); ++kind) {
    try_with([&](Plan& p) { p.kinds &= ~(std::uint32_t{1} << kind); });
  }
  std::int64_t most = run(smallest).faults;
  for (std::int64_t step = std::bit_ceil(static_cast<std::uint64_t>(most + 1)) / 2; step > 0;
       step /= 2) {
    try_with([&](Plan& p) { p.most_faults = std::max<std::int64_t>(0, most - step); });
    most = std::min(most, smallest.most_faults);
  }
  for (const int workers : {1, 2, 3}) {
    if (workers < smallest.workers) try_with([&](Plan& p) { p.workers = workers; });
  }
  for (const int streams : {1, 2, 4, 8}) {
    if (streams < smallest.streams) try_with([&](Plan& p) { p.streams = streams; });
  }
  return smallest;
}

}  // namespace stela::sim
