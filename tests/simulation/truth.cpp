#include "simulation/truth.hpp"

#include <algorithm>
#include <utility>

namespace stela::sim {
namespace {

std::string name(std::int64_t sequence) {
  return "event " + std::to_string(sequence);
}

}  // namespace

void Truth::on_generation(int number, int) {
  generation_ = number;
}

void Truth::on_append(std::int64_t sequence, std::int64_t stream, bool publishes, std::string id,
                      PartitionId partition) {
  if (store_went_back_) return;
  if (index(sequence) != events_.size()) {
    fail(2, name(sequence) + " was appended behind " + std::to_string(events_.size()));
  }
  events_.push_back({.stream = stream,
                     .publishes = publishes,
                     .id = std::move(id),
                     .generation = generation_,
                     .partition = partition});
  if (!publishes) return;
  partitions_[partition].expected.push_back(sequence);
  await(events_.back());
  ++open_;
}

void Truth::on_acquire(PartitionId partition, std::string_view owner, std::int64_t epoch) {
  // A power cut, and a copy from before, may set epochs back.
  if (store_went_back_) return;
  Partition& known = partitions_[partition];
  if (epoch <= known.epoch) {
    fail(3, partition.label() + " got epoch " + std::to_string(epoch) + " after " +
                std::to_string(known.epoch));
  }
  if (!known.owner.empty() && known.owner != owner) ++changes_of_owner_;
  known.epoch = epoch;
  known.owner = owner;
}

void Truth::on_change(PartitionId partition, std::string_view by, std::int64_t epoch,
                      std::string_view owner, std::int64_t current_epoch) {
  if (by == owner && epoch == current_epoch) return;
  fail(3, partition.label() + " was changed by " + std::string{by} + " under epoch " +
              std::to_string(epoch) + ", though it is " + std::string{owner} + "'s under " +
              std::to_string(current_epoch));
}

/// One event more to wait for.
void Truth::await(const Event& event) {
  ++waiting_[event.generation];
  ++missing_;
  ++partitions_[event.partition].missing;
}

void Truth::settle(const Event& event) {
  --waiting_[event.generation];
  --missing_;
  --partitions_[event.partition].missing;
}

void Truth::on_published(std::int64_t sequence, std::int64_t redelivery) {
  if (store_went_back_) return;
  Event& event = events_.at(index(sequence));
  if (std::exchange(event.parked, false)) parked_by_stream_[event.stream].erase(sequence);
  const bool stands = redelivery > 0 ? event.redeliveries > 0 : event.copies > 0;
  if (!stands) {
    fail(5, name(sequence) + " is marked as published, and doesn't stand at the broker");
  }
  if (!std::exchange(event.marked, true)) --open_;
}

void Truth::on_parked(std::int64_t sequence) {
  if (store_went_back_) return;
  Event& event = events_.at(index(sequence));
  if (event.parked) return;
  event.parked = true;
  parked_by_stream_[event.stream].insert(sequence);
  if (event.copies + event.redeliveries == 0) settle(event);
}

void Truth::on_discarded(std::int64_t sequence) {
  if (store_went_back_) return;
  Event& event = events_.at(index(sequence));
  if (!event.parked && event.copies == 0 && event.redeliveries == 0) settle(event);
  if (!event.discarded && !event.marked) --open_;
  event.discarded = true;
  parked_by_stream_[event.stream].erase(sequence);
}

void Truth::on_sent_again(std::int64_t sequence, std::int64_t redelivery, int generation) {
  if (store_went_back_) return;
  wishes_[redelivery] = {sequence};
  Event& event = events_.at(index(sequence));
  event.sent_again = true;
  if (!event.parked) {
    if (event.copies + event.redeliveries == 0)
      --waiting_[event.generation], ++waiting_[generation];
    event.generation = generation;
    return;
  }
  event.generation = generation;
  event.parked = false;
  parked_by_stream_[event.stream].erase(sequence);
  if (event.copies == 0) await(event);
}

void Truth::on_republished(std::int64_t sequence, std::int64_t redelivery, int generation) {
  if (store_went_back_) return;
  wishes_[redelivery] = {sequence};
  Event& event = events_.at(index(sequence));
  ++event.republished;
  if (event.copies + event.redeliveries > 0 || std::exchange(event.awaited, true)) return;
  event.generation = generation;
  await(event);
}

void Truth::on_republish_given_up(std::int64_t sequence) {
  Event& event = events_.at(index(sequence));
  if (std::exchange(event.awaited, false)) settle(event);
}

void Truth::check_pending(std::int64_t pending) const {
  if (store_went_back_ || pending == open_) return;
  fail(1, std::to_string(open_) + " events are to be published, and the store knows of " +
              std::to_string(pending));
}

void Truth::on_store_went_back(std::set<PartitionId> closed) {
  store_went_back_ = true;
  closed_ = std::move(closed);
}

void Truth::on_lost(const Sent& message) {
  const std::int64_t sequence = message.event;
  Event& event = events_.at(index(sequence));
  event.lost = true;
  if (message.redelivery > 0) {
    --event.redeliveries;
    --wishes_[message.redelivery].copies;
  } else {
    --event.copies;
  }
  Partition& partition = partitions_[event.partition];
  partition.last_stored = std::min(partition.last_stored, sequence - 1);
  std::int64_t& last = last_of_stream_[event.stream];
  last = std::min(last, sequence - 1);
  // What isn't marked is going to be sent once more; what is, only if an operator says so.
  if (event.marked || event.parked || event.discarded) return;
  if (event.copies + event.redeliveries > 0) return;
  await(event);
}

void Truth::on_stored(PartitionId partition, const Stored& stored) {
  ++stored_;
  ++partitions_[partition].stored;
  if (store_went_back_) {
    if (!closed_.contains(partition)) return;
    fail(4, partition.label() + " is written to, though the store has forgotten what it holds");
  }
  const std::int64_t sequence = stored.message.event;
  if (stored.message.store_id != store_id_ || sequence < 1 || index(sequence) >= events_.size()) {
    fail(4, "the broker stores " + name(sequence) + ", which was never committed");
  }
  Event& event = events_[index(sequence)];
  if (!event.publishes) fail(4, "the broker stores " + name(sequence) + ", which is local");
  if (stored.message.redelivery == 0 && event.partition != partition) {
    fail(4, name(sequence) + " is stored in " + partition.label() + " and belongs to " +
                event.partition.label());
  }
  if (stored.message.id.substr(0, event.id.size()) != event.id) {
    fail(4, name(sequence) + " is stored under another id");
  }
  const bool first = event.copies + event.redeliveries == 0;
  const bool awaited = std::exchange(event.awaited, false);
  // Nobody waited any more for what was skipped, and arrives all the same.
  const bool is_open = !event.marked && !event.discarded;
  if (first && !event.parked && (is_open || awaited)) settle(event);
  if (first && !event.lost) check_stream(event, sequence);
  if (stored.message.redelivery > 0) return on_redelivered(event, stored.message);
  ++event.copies;
  count_copy(name(sequence), std::max(event.copies, event.unasked()));
  if (event.copies > 1 || event.lost) return;
  check_order(partitions_[partition], sequence);
  check_generation(event, sequence);
}

/// Each wish is fulfilled once; and without the wish to publish it once more, an event stands at
/// the broker once, however often it was parked and retried.
void Truth::on_redelivered(Event& event, const Sent& message) {
  const auto wish = wishes_.find(message.redelivery);
  const std::string what =
      "redelivery " + std::to_string(message.redelivery) + " of " + name(message.event);
  if (wish == wishes_.end() || wish->second.sequence != message.event) {
    fail(4, what + " is stored, and nobody asked for it");
  }
  ++event.redeliveries;
  count_copy(what, std::max(++wish->second.copies, event.unasked()));
}

/// Invariant 7: the broker stores something for the so-many-th time.
void Truth::count_copy(const std::string& what, int copies) {
  if (copies <= 1) return;
  ++duplicates_;
  if (fence_ != Fence::none) fail(7, what + " is stored a second time");
  if (duplicates_ <= allowed_duplicates_) return;
  fail(7, "there are " + std::to_string(duplicates_) + " duplicates, and faults account for " +
              std::to_string(allowed_duplicates_));
}

void Truth::check_order(Partition& partition, std::int64_t sequence) {
  if (fence_ == Fence::none) return;
  if (sequence <= partition.last_stored) {
    fail(7, name(sequence) + " is stored after event " + std::to_string(partition.last_stored));
  }
  partition.last_stored = sequence;
  while (partition.next < partition.expected.size()) {
    const std::int64_t expected = partition.expected[partition.next];
    if (expected > sequence) break;
    ++partition.next;
    if (expected == sequence) break;
    const Event& passed = events_[index(expected)];
    if (passed.copies == 0 && !passed.parked && !passed.discarded && !passed.sent_again &&
        !passed.lost) {
      fail(6, name(sequence) + " is stored before " + name(expected));
    }
  }
}

void Truth::check_stream(const Event& event, std::int64_t sequence) {
  std::int64_t& last = last_of_stream_[event.stream];
  if (sequence <= last) {
    fail(6, name(sequence) + " is first stored after event " + std::to_string(last) +
                " of its stream");
  }
  last = sequence;
  const auto parked = parked_by_stream_.find(event.stream);
  if (parked == parked_by_stream_.end()) return;
  for (const std::int64_t before : parked->second) {
    if (before >= sequence) return;
    // A worker that has lost its lease may publish what its successor parked: without a fence, or
    // as long as that one hasn't stored anything. What is in the stream isn't passed.
    if (events_[index(before)].copies > 0) continue;
    fail(8, name(sequence) + " passed event " + std::to_string(before) +
                " of its stream, which is parked");
  }
}

void Truth::check_generation(const Event& event, std::int64_t sequence) {
  for (const auto& [generation, waiting] : waiting_) {
    if (generation >= event.generation) return;
    if (waiting > 0) {
      fail(6, name(sequence) + " of generation " + std::to_string(event.generation) +
                  " is stored while generation " + std::to_string(generation) + " has " +
                  std::to_string(waiting) + " to go");
    }
  }
}

std::int64_t Truth::missing_of(PartitionId partition) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() ? found->second.missing : 0;
}

std::int64_t Truth::stored_of(PartitionId partition) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() ? found->second.stored : 0;
}

std::string Truth::first_missing() const {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    if (event.publishes && event.copies + event.redeliveries == 0 && !event.parked &&
        !event.discarded && (!event.marked || event.awaited)) {
      return name(static_cast<std::int64_t>(i) + 1) + " of " + event.partition.label();
    }
  }
  return "none";
}

}  // namespace stela::sim
