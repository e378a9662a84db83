#include "simulation/model_store.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace stela::sim {
namespace {

class PointingBatch final : public relay::PendingBatch {};

}  // namespace

void ModelStore::publish(PartitionId, Partition& partition, const relay::PublishedRun& run) {
  if (run.redelivery > 0) {
    const auto redelivery = redeliveries_.find(run.redelivery);
    const bool was_waiting = redelivery != redeliveries_.end() && !redelivery->second.republish;
    const std::int64_t stream = was_waiting ? redelivery->second.stream : 0;
    redeliveries_.erase(run.redelivery);
    partition.redeliveries.erase(run.redelivery);
    truth_.on_published(run.first.value(), run.redelivery);
    if (was_waiting) send_followers(stream);
    return;
  }
  const auto begin = partition.waiting.lower_bound(run.first.value());
  const auto end = partition.waiting.upper_bound(run.last.value());
  for (auto it = begin; it != end; ++it) truth_.on_published(it->first, 0);
  if (begin == end) {
    // It was parked, and arrived all the same.
    for (auto& [stream, messages] : parked_) {
      if (messages.erase(run.first.value()) == 0) continue;
      truth_.on_published(run.first.value(), 0);
      send_followers(stream);
      break;
    }
  }
  partition.waiting.erase(begin, end);
  partition.published_through = std::max(partition.published_through, run.last.value());
}

/// What is parked behind nothing, once nothing of the stream is to be sent again.
void ModelStore::send_followers(std::int64_t stream) {
  const bool is_sent_again = std::any_of(
      redeliveries_.begin(), redeliveries_.end(),
      [&](const auto& entry) { return entry.second.stream == stream && !entry.second.republish; });
  const auto found = parked_.find(stream);
  if (found == parked_.end()) return;
  auto& messages = found->second;
  while (!is_sent_again && !messages.empty() && messages.begin()->second.is_behind) {
    const auto [sequence, how] = *messages.begin();
    messages.erase(messages.begin());
    enqueue_again(how.partition, generation_of(sequence), sequence, stream, false);
  }
  if (messages.empty()) parked_.erase(found);
}

std::optional<std::int64_t> ModelStore::take(Partition& partition,
                                             const relay::ParkedMessage& message) {
  if (message.redelivery > 0) {
    const auto found = redeliveries_.find(message.redelivery);
    if (found == redeliveries_.end()) return std::nullopt;
    const std::int64_t stream = found->second.stream;
    redeliveries_.erase(found);
    partition.redeliveries.erase(message.redelivery);
    return stream;
  }
  const auto found = partition.waiting.find(message.sequence.value());
  if (found == partition.waiting.end()) return std::nullopt;
  const std::int64_t stream = found->second.stream;
  partition.waiting.erase(found);
  return stream;
}

void ModelStore::park(PartitionId id, Partition& partition, const relay::ParkedMessage& message) {
  const auto stream = take(partition, message);
  if (!stream) return;
  const std::int64_t sequence = message.sequence.value();
  const bool is_behind = message.reason == relay::ParkedMessage::Reason::behind;
  if (is_behind && !is_behind_parked(*stream, sequence)) {
    return enqueue_again(id, generation_of(sequence), sequence, *stream, false);
  }
  parked_[*stream][sequence] = {id, message.attempts, is_behind};
  truth_.on_parked(sequence);
  if (is_behind) send_followers(*stream);
}

void ModelStore::skip(Partition& partition, const relay::ParkedMessage& message) {
  const auto redelivery = redeliveries_.find(message.redelivery);
  const bool republished = redelivery != redeliveries_.end() && redelivery->second.republish;
  const std::int64_t sequence = message.sequence.value();
  const auto stream = take(partition, message);
  if (!stream) return;
  if (republished) return truth_.on_republish_given_up(sequence);
  discarded_.insert(sequence);
  truth_.on_discarded(sequence);
  send_followers(*stream);
}

/// One worker's way to the store.
class ModelStore::Port final : public relay::OutboxPort {
 public:
  explicit Port(ModelStore& store) noexcept : store_{store} {}

  std::string store_id() const override { return store_.id(); }

  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override {
    store_.workers_[std::string{worker}] = {store_.now() + ttl.count(), ttl.count(),
                                            broker.is_cut_off};
    return static_cast<int>(std::erase_if(store_.workers_, [&](const auto& entry) {
      return entry.second.until < store_.now() - 20 * ttl.count() ||
             entry.second.until > store_.now() + 2 * entry.second.ttl;
    }));
  }
  void leave(std::string_view worker) noexcept override {
    store_.workers_.erase(std::string{worker});
  }

  relay::Overview look() override {
    relay::Overview overview;
    const std::int64_t now = store_.now();
    for (const auto& [id, partition] : store_.partitions_) {
      const bool has_owner = !partition.owner.empty();
      const bool over = is_over(partition, now);
      overview.partitions.push_back({.id = id,
                                     .owner = partition.owner,
                                     .is_free = !has_owner || over,
                                     .is_expired = has_owner && over,
                                     .is_stopped = !partition.stopped.empty(),
                                     .is_lost = partition.stopped == "broker_lost",
                                     .is_needed = store_.is_needed(id)});
    }
    for (const auto& [name, worker] : store_.workers_) {
      if (worker.until > now && worker.until <= now + 2 * worker.ttl) {
        overview.workers.push_back(name);
        if (worker.is_cut_off) overview.cut_off.push_back(name);
      }
    }
    return overview;
  }

  std::optional<relay::Standing> acquire(PartitionId id, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    return take(id, worker, ttl, "");
  }
  std::optional<relay::Standing> acquire_lost(PartitionId id, std::string_view worker,
                                              std::chrono::microseconds ttl) override {
    return take(id, worker, ttl, "broker_lost");
  }
  std::optional<relay::Standing> take(PartitionId id, std::string_view worker,
                                      std::chrono::microseconds ttl, std::string_view stopped) {
    Partition& partition = store_.partitions_.at(id);
    const std::int64_t now = store_.now();
    const bool has_owner = !partition.owner.empty();
    if (partition.stopped != stopped) return std::nullopt;
    if (has_owner && !is_over(partition, now)) return std::nullopt;
    partition.owner = worker;
    partition.lease_until = now + ttl.count();
    partition.lease_ttl = ttl.count();
    ++partition.epoch;
    store_.truth_.on_acquire(id, worker, partition.epoch);
    return relay::Standing{.epoch = partition.epoch,
                           .published_through = GlobalSequence{partition.published_through},
                           .broker_sequence = partition.broker_sequence,
                           .broker_id = partition.broker_id,
                           .unclean = has_owner,
                           .flight_count = partition.flight_count,
                           .flight_through = GlobalSequence{partition.flight_through},
                           .attempts = partition.attempts,
                           .backoff_left = std::chrono::microseconds{std::max<std::int64_t>(
                               partition.next_attempt_at - now, 0)},
                           .adopted = partition.adopted};
  }

  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease) || partition.lease_until <= store_.now()) return false;
    partition.lease_until = store_.now() + ttl.count();
    return true;
  }

  void release(const relay::Lease& lease) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease)) return;
    partition.owner.clear();
    partition.lease_until = 0;
  }

  std::unique_ptr<relay::PendingBatch> next(PartitionId id, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    auto batch = std::make_unique<PointingBatch>();
    const Partition& partition = store_.partitions_.at(id);
    for (auto it = partition.redeliveries.upper_bound(cursor.redelivery);
         it != partition.redeliveries.end(); ++it) {
      const Redelivery& redelivery = store_.redeliveries_.at(*it);
      if (!left(*batch, redelivery.sequence, limit)) return batch;
      batch->messages.push_back(
          {.sequence = GlobalSequence{redelivery.sequence},
           .stream = redelivery.stream,
           .redelivery = *it,
           .generation = store_.mark_of(redelivery.generation),
           .attempts = redelivery.attempts,
           .is_behind_parked = store_.is_behind_parked(redelivery.stream, redelivery.sequence),
           .is_republished = redelivery.republish,
           .event = &store_.event(redelivery.sequence)});
    }
    const std::int64_t end = store_.open_end();
    for (auto it = partition.waiting.upper_bound(cursor.sequence.value());
         it != partition.waiting.end() && it->first < end && left(*batch, it->first, limit); ++it) {
      batch->messages.push_back(
          {.sequence = GlobalSequence{it->first},
           .stream = it->second.stream,
           .generation = store_.mark_of(store_.generation_of(it->first)),
           .attempts = it->second.attempts,
           .is_behind_parked = store_.is_behind_parked(it->second.stream, it->first),
           .event = &store_.event(it->first)});
    }
    return batch;
  }

  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override {
    std::vector<EventId> ids;
    for (const GlobalSequence sequence : sequences) {
      const bool exists = sequence.value() >= 1 && sequence.value() <= store_.last_sequence();
      ids.push_back(exists ? store_.event(sequence.value()).id : EventId{});
    }
    return ids;
  }

  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease)) return false;
    store_.truth_.on_change(lease.partition, lease.owner, std::abs(lease.epoch), partition.owner,
                            partition.epoch);
    for (const auto& run : advance.published) store_.publish(lease.partition, partition, run);
    for (const auto& message : advance.parked) store_.park(lease.partition, partition, message);
    for (const auto& message : advance.skipped) store_.skip(partition, message);
    if (advance.broker_sequence) {
      partition.broker_sequence = *advance.broker_sequence;
      partition.broker_id = advance.broker_id;
      partition.adopted = false;
    }
    partition.flight_count = advance.flight_count;
    partition.flight_through = advance.flight_through.value();
    store_.check();
    return true;
  }

  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease)) return false;
    partition.attempts = trouble.attempts;
    partition.next_attempt_at =
        trouble.backoff.count() > 0 ? store_.now() + trouble.backoff.count() : 0;
    if (!trouble.message) return true;
    const auto redelivery = store_.redeliveries_.find(trouble.message->redelivery);
    if (redelivery != store_.redeliveries_.end()) {
      redelivery->second.attempts = trouble.message_attempts;
    }
    const auto waiting = partition.waiting.find(trouble.message->sequence.value());
    if (trouble.message->redelivery == 0 && waiting != partition.waiting.end()) {
      waiting->second.attempts = trouble.message_attempts;
    }
    return true;
  }

  bool stop(const relay::Lease& lease, StopReason reason, std::string_view) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease)) return false;
    partition.stopped = to_string(reason);
    return true;
  }
  bool continue_lost(const relay::Lease& lease) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease) || partition.stopped != "broker_lost") return false;
    partition.stopped.clear();
    return true;
  }

 private:
  static bool is_over(const Partition& partition, std::int64_t now) noexcept {
    return partition.lease_until <= now || partition.lease_until > now + 2 * partition.lease_ttl;
  }
  bool holds(const Partition& partition, const relay::Lease& lease) const noexcept {
    const Mutant mutant = store_.mutant_;
    const bool unchecked =
        mutant == Mutant::no_epoch_in_mark || mutant == Mutant::empty_list_means_all;
    if (lease.epoch <= 0 && unchecked) return true;
    return partition.owner == lease.owner && partition.epoch == lease.epoch;
  }
  bool left(const relay::PendingBatch& batch, std::int64_t sequence,
            const relay::BatchLimit& limit) const {
    if (batch.messages.empty()) return limit.messages > 0;
    auto bytes = static_cast<std::int64_t>(store_.event(sequence).payload.size());
    for (const relay::PendingMessage& message : batch.messages) {
      bytes += static_cast<std::int64_t>(message.event->payload.size());
    }
    return static_cast<int>(batch.messages.size()) < limit.messages && bytes <= limit.bytes;
  }

  ModelStore& store_;
};

std::unique_ptr<relay::OutboxPort> ModelStore::port() {
  return std::make_unique<Port>(*this);
}

}  // namespace stela::sim
