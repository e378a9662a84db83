// What nobody can repair but an operator: a partition has to stop and say why, and nothing else may
// come to harm.
#include "simulation/node.hpp"
#include "simulation/simulation.hpp"

#include <algorithm>
#include <utility>

namespace stela::sim {

/// Somebody will look at it, and it isn't in trouble already.
bool Simulation::can_be_struck(PartitionId partition) const {
  return store_.is_needed(partition) && !expected_stops_.contains(partition) &&
         !store_.is_adopted(partition);
}

PartitionId Simulation::any_partition() {
  const std::vector<PartitionId> all = store_.partitions();
  return all[static_cast<std::size_t>(world_.chance.below(static_cast<std::int64_t>(all.size())))];
}

void Simulation::lose_tail() {
  if (plan_.fence != Fence::stream || world_.now() + 30 * second > plan_.faults_until) return;
  lose_tail_of(any_partition());
}

/// The server forgets messages at the end of a stream that it had acknowledged.
void Simulation::lose_tail_of(PartitionId partition) {
  if (healing_ || restored_ >= 0) return;
  // An acknowledgement on its way would be believed.
  if (is_anyone_busy()) {
    return world_.after(10 * ms, [this, partition] { lose_tail_of(partition); });
  }
  JetStreamModel& stream = broker_.stream(partition);
  const std::uint64_t marked = store_.broker_sequence(partition);
  const bool can = marked > stream.first_sequence() && marked <= stream.last_sequence() &&
                   can_be_struck(partition);
  if (!can) return;
  const auto wanted = static_cast<std::uint64_t>(world_.chance.between(1, 3));
  const std::uint64_t last = marked - std::min(wanted, marked - stream.first_sequence());
  note(partition.label() + " loses what came after " + std::to_string(last));
  for (std::uint64_t at = last + 1; at <= stream.last_sequence(); ++at) {
    const Stored* const stored = stream.find(at);
    if (stored == nullptr || stored->message.store_id.empty()) continue;
    truth_.on_lost(stored->message);
    if (at <= marked) lost_[partition].push_back(GlobalSequence{stored->message.event});
  }
  stream.lose_tail(stream.last_sequence() - last);
  expected_stops_[partition] = "broker_lost";
  ++outcome_.disasters;
  broker_.break_all();
}

/// The next message that the broker stores can't be read again.
void Simulation::make_next_unreadable() {
  if (plan_.fence != Fence::stream || world_.now() + 30 * second > plan_.faults_until) return;
  broker_.on_stored = [this](PartitionId partition, std::uint64_t sequence) {
    if (!can_be_struck(partition)) return;
    broker_.on_stored = nullptr;
    if (healing_ || restored_ >= 0) return;
    const auto erase = [this, partition, sequence] {
      const Stored* const stored = broker_.stream(partition).find(sequence);
      if (stored == nullptr) return;
      note(partition.label() + " can't be read at " + std::to_string(sequence));
      truth_.on_lost(stored->message);
      broker_.stream(partition).erase(sequence);
      expected_stops_[partition] = "unreadable";
      ++outcome_.disasters;
      broker_.break_all();
    };
    world_.after(0, erase);
  };
}

void Simulation::let_a_foreigner_write() {
  if (plan_.fence == Fence::none || world_.now() + 30 * second > plan_.faults_until) return;
  const PartitionId partition = any_partition();
  if (!can_be_struck(partition)) return;
  note("somebody else writes to " + partition.label());
  broker_.write_foreign(partition);
  expected_stops_[partition] = "foreign_writer";
}

/// What is old, and marked as published, goes.
void Simulation::age_out() {
  if (plan_.fence == Fence::none) return;
  for (const PartitionId partition : store_.partitions()) {
    JetStreamModel& stream = broker_.stream(partition);
    std::uint64_t keep = stream.last_sequence() + 1;
    for (const Stored& stored : stream.messages()) {
      const PartitionId owner =
          plan_.fence == Fence::stream ? partition : broker_.partition_of(stored.message.subject);
      if (stored.sequence <= store_.broker_sequence(owner)) continue;
      keep = stored.sequence;
      break;
    }
    stream.purge_before(keep);
  }
  broker_.break_all();
}

// --- a store from an older copy

void Simulation::plan_restore() {
  world_.at(plan_.faults_until / 2, [this] {
    note("the store is copied");
    copy_ = store_.copy();
  });
  world_.at(plan_.faults_until * 3 / 4, [this] { restore(); });
}

void Simulation::restore() {
  if (is_anyone_busy() || !expected_stops_.empty()) {
    return world_.after(10 * ms, [this] { restore(); });
  }
  if (healing_) return;
  note("everybody dies, and the store is gone");
  restored_ = world_.now();
  while (!nodes_.empty()) crash(*nodes_.back());
  // Until the last late byte has arrived.
  world_.after(latest_of_all, [this] {
    const std::int64_t last = store_.last_sequence_of(*copy_);
    if (!broker_.is_up()) broker_.come_back();
    store_.restore(*copy_);
    for (const PartitionId partition : store_.partitions()) {
      // What was to be adopted when the copy was made, is.
      const bool is_closed = broker_.last_event(partition) > last && !store_.is_adopted(partition);
      if (is_closed) closed_.insert(partition);
    }
    known_stops_.clear();
    truth_.on_store_went_back(closed_);
    broker_.on_stored = [this](PartitionId partition, std::uint64_t sequence) {
      check_stored_once(partition, sequence);
    };
    note("the store is restored as of event " + std::to_string(last));
    for (int i = 0; i < plan_.workers; ++i) start_node();
  });
}

/// What was published since the copy was made, and stands there, isn't published again.
void Simulation::check_stored_once(PartitionId partition, std::uint64_t sequence) {
  const JetStreamModel& stream = broker_.stream(partition);
  const std::string& id = stream.find(sequence)->message.id;
  for (const Stored& stored : stream.messages()) {
    if (stored.deleted || stored.sequence == sequence || stored.message.id != id) continue;
    throw Violation{7, "the restored store publishes " + id + " a second time"};
  }
}

void Simulation::check_restored() const {
  for (const PartitionId partition : closed_) {
    if (store_.stopped().contains(partition) || !store_.is_needed(partition)) continue;
    throw Violation{5, partition.label() + " should have stopped: store_went_back"};
  }
}

// --- the way out

/// An operator looks every few seconds.
void Simulation::watch() {
  for (const auto& [partition, reason] : store_.stopped()) {
    if (known_stops_.insert(partition).second) on_stop(partition, reason);
  }
  world_.after(2 * second, [this] { watch(); });
}

void Simulation::on_stop(PartitionId partition, const std::string& reason) {
  static constexpr std::pair<std::string_view, Row> rows[] = {
      {"unreadable", Row::unreadable},
      {"broker_lost", Row::broker_lost},
      {"store_went_back", Row::store_went_back},
      {"foreign_writer", Row::foreign_writer}};
  for (const auto& [name, row] : rows) {
    if (name == reason) ++outcome_.rows[static_cast<std::size_t>(row)];
  }
  if (restored_ >= 0) {
    // An older store also meets again what was adopted since.
    return;
  }
  const auto expected = expected_stops_.find(partition);
  if (expected == expected_stops_.end() || expected->second != reason) {
    throw Violation{5, partition.label() + " stopped without need: " + reason};
  }
  world_.after(world_.chance.between(second, 10 * second), [this, partition] { adopt(partition); });
}

void Simulation::adopt(PartitionId partition) {
  if (restored_ >= 0) return;
  known_stops_.erase(partition);
  note("an operator adopts " + partition.label());
  expected_stops_.erase(partition);
  shared_.adopt(partition);
  const std::vector<GlobalSequence> lost = std::exchange(lost_[partition], {});
  shared_.republish(lost);
  wake_all();
}

}  // namespace stela::sim
