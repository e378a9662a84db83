// Streams that fail by themselves, and whether the partitions of the others get on meanwhile.
#include "relay/core.hpp"
#include "simulation/simulation.hpp"

#include <algorithm>

namespace stela::sim {

void Simulation::strike_stream(PartitionId partition, Time length) {
  const auto kind =
      static_cast<Outage>(world_.chance.below(static_cast<std::int64_t>(Outage::count)));
  note("the stream of " + partition.label() + " is " + std::string{to_string(kind)} + " for " +
       std::to_string(length / ms) + " ms");
  broker_.outages[partition] = {kind, world_.now() + length};
  // Somebody may just have missed an answer, and have begun the longest wait before the next try.
  const Time noticed =
      2 * micros(options_.publish_timeout) + micros(relay::longest_backoff(options_));
  excuse(partition, world_.now() + length + noticed);
}

/// In a calm world: one stream, or as many as a server of theirs may have had.
void Simulation::plan_next_outage() {
  if (healing_ || !plan_.calm) return;
  world_.after(world_.chance.between(second, 30 * second), [this] {
    if (healing_) return;
    const std::vector<PartitionId> all = store_.partitions();
    const auto most = static_cast<std::int64_t>(std::max<std::size_t>(all.size() / 2, 1));
    const std::int64_t count = world_.chance.happens(0.7) ? 1 : world_.chance.between(1, most);
    for (std::int64_t i = 0; i < count && outcome_.faults < plan_.most_faults; ++i) {
      ++outcome_.faults;
      strike_stream(any_partition(), world_.chance.between(100 * ms, 60 * second));
    }
    plan_next_outage();
  });
}

void Simulation::excuse(PartitionId partition, Time until) {
  Time& since = progress_[partition].since;
  since = std::max(since, until);
}

/// How long a partition that waits for something may stand still though nothing is wrong with it:
/// its owner may have to hand it over, and both may have to look before it has another, who reads
/// it back behind all others and sends behind what they have in flight.
Time Simulation::patience() const {
  const Time ahead = plan_.line.time_for(options_.max_in_flight_bytes + socket_bytes);
  return 2 * micros(options_.idle_backoff) + look_time() + ahead + trip() + 100 * ms;
}

/// Invariant 12. Everything that is wrong in a calm world is known, so whoever stands still without
/// an excuse was held up by somebody else's trouble.
void Simulation::watch_progress() {
  if (healing_ || !plan_.calm) return;
  const Time now = world_.now();
  for (const PartitionId partition : store_.partitions()) {
    // Workers come one by one, and share anew once those who are there have stayed.
    if (now == 0) excuse(partition, 2 * second + micros(options_.lease_renew));
    Progress& known = progress_[partition];
    const std::int64_t stored = truth_.stored_of(partition);
    if (stored != known.stored || truth_.missing_of(partition) == 0) {
      known = {stored, std::max(known.since, now)};
    }
    if (now <= known.since + patience()) continue;
    throw Violation{12, partition.label() + " stands still since " +
                            std::to_string(known.since / ms) + " ms, though its stream works"};
  }
  world_.after(50 * ms, [this] { watch_progress(); });
}

}  // namespace stela::sim
