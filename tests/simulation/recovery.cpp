// How everything comes right after the last fault, and how long that may take.
#include "relay/core.hpp"
#include "simulation/node.hpp"
#include "simulation/simulation.hpp"

#include <algorithm>
#include <cstdio>

namespace stela::sim {

/// Nothing goes wrong any more. What went wrong before, a connection that is deaf among it,
/// everybody has to find out alone.
void Simulation::heal() {
  note("everything heals");
  healing_ = true;
  kill_chance_ = pause_chance_ = 0;
  store_faults_ = {};
  broker_.faults = {};
  broker_.set_full(false);
  broker_.set_missing(false);
  broker_.set_forbidding(false);
  broker_.rejected.clear();
  broker_.unreachable.clear();
  broker_.outages.clear();
  if (!broker_.is_up()) broker_.come_back();
  if (nodes_.empty()) start_node();
}

/// Lets all come right, and sees how much of the time for it was needed.
void Simulation::recover() {
  const Time begun = world_.now();
  const Time limit = begun + longest_recovery();
  Time done = begun;
  while (world_.step(limit)) {
    if (truth_.missing() != 0) done = world_.now();
  }
  // In an older store some of it never comes right.
  if (restored_ >= 0) return;
  outcome_.recovery = static_cast<double>(done - begun) / static_cast<double>(limit - begun);
}

/// How long it may take until all is done: a missed answer and the wait after it, the next look at
/// a lost wake-up; what was begun before, where more than a stream failed; and the backlog.
Time Simulation::longest_recovery() const {
  Time waits = 2 * micros(options_.publish_timeout) + micros(relay::longest_backoff(options_)) +
               micros(options_.idle_backoff);
  if (!plan_.calm) waits += longest_aftermath();
  // Were it all in one partition of one worker, one message in flight, and everything sent twice.
  const Time backlog = truth_.missing() * std::max(10 * ms, trip()) +
                       2 * plan_.line.time_for(store_.waiting_bytes() + socket_bytes);
  return waits + look_time() + backlog;
}

/// A dead owner's lease, and those who look for it; a connection that is deaf and the longest wait
/// for another; an operator who has to come, and the broker, which takes what it lost for a
/// duplicate as long as it remembers the id.
Time Simulation::longest_aftermath() const {
  constexpr Time longest_probe = 38 * second;
  constexpr Time an_operator = 12 * second;
  const bool calls_operator = !expected_stops_.empty() || !store_.stopped().empty();
  const Time forgetting = outcome_.disasters > 0 ? broker_.limits().duplicate_window : 0;
  return micros(options_.lease_ttl) + 2 * micros(options_.idle_backoff) +
         micros(options_.publish_timeout) + longest_probe + (calls_operator ? an_operator : 0) +
         forgetting;
}

/// What the line takes for a message and its answer, were it alone.
Time Simulation::trip() const {
  return plan_.line.round_trip + 2 * NetworkFaults{}.slowest;
}

/// Until all partitions are read back: a question each, and the messages that it leads to.
Time Simulation::look_time() const {
  return static_cast<Time>(store_.partitions().size()) * plan_.line.question + 2 * trip();
}

void Simulation::check_liveness() {
  if (plan_.trace && truth_.missing() != 0) {
    for (const auto& node : nodes_) note(describe(*node));
    for (const PartitionId id : store_.partitions()) {
      std::printf("%s: %s\n", id.label().c_str(), store_.describe(id).c_str());
    }
  }
  std::erase_if(expected_stops_, [&](const auto& stop) {
    const auto& lost = lost_[stop.first];
    // Late bytes may have brought back what was lost before anybody looked; and nobody looks where
    // nothing will ever be sent again.
    const bool is_back = !lost.empty() && std::all_of(lost.begin(), lost.end(), [&](auto sequence) {
      return truth_.event(sequence.value()).copies > 0;
    });
    return is_back || !store_.is_needed(stop.first);
  });
  if (!expected_stops_.empty()) {
    const auto& [partition, reason] = *expected_stops_.begin();
    throw Violation{5, partition.label() + " should have stopped: " + reason};
  }
  if (!store_.stopped().empty()) {
    throw Violation{11, store_.stopped().begin()->first.label() + " is stopped"};
  }
  if (truth_.missing() != 0) {
    throw Violation{11, std::to_string(truth_.missing()) +
                            " events aren't through in time after the last fault, " +
                            truth_.first_missing() + " is the first"};
  }
  const std::int64_t moved = truth_.changes_of_owner();
  run_until(world_.now() + 2 * options_.lease_ttl.count() * ms);
  if (truth_.changes_of_owner() != moved) {
    for (const auto& node : nodes_) note(describe(*node));
    throw Violation{11, "partitions still move from worker to worker"};
  }
}

}  // namespace stela::sim
