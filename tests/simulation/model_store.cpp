#include "simulation/model_store.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace stela::sim {
namespace {

constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view model_store_id = "0190a000-0000-7000-8000-000000000001";

class PointingBatch final : public relay::PendingBatch {};

}  // namespace

struct ModelStore::Copy {
  std::int64_t last_sequence = 0;
  std::vector<Generation> generations;
  boost::container::flat_map<PartitionId, Partition> partitions;
  std::map<std::int64_t, Redelivery> redeliveries;
  std::int64_t last_redelivery = 0;
  std::map<std::int64_t, std::map<std::int64_t, Parked>> parked;
  std::set<std::int64_t> discarded;
  std::map<std::string, std::int64_t> workers;
};

ModelStore::ModelStore(const Clock& clock, Truth& truth, int partition_count, Chance& chance,
                       relay::Mutation mutation)
    : clock_{clock}, truth_{truth}, mutation_{mutation}, ids_{chance} {
  generations_.push_back({1, partition_count});
  for (int i = 0; i < partition_count; ++i) partitions_[PartitionId::at(i, partition_count)];
  truth_.on_generation(1, partition_count);
}

ModelStore::~ModelStore() = default;

std::string ModelStore::id() const {
  return std::string{model_store_id};
}

void ModelStore::append(int stream, bool publishes) {
  append(stream, publishes, ids_.next(clock_.now()));
}

void ModelStore::append(int stream, bool publishes, const EventId& id) {
  while (static_cast<int>(streams_.size()) <= stream) {
    streams_.push_back(StreamId::of("thing", std::to_string(streams_.size())));
  }
  const StreamId& name = streams_[static_cast<std::size_t>(stream)];
  const std::int64_t sequence = last_sequence() + 1;
  const EventKind& kind = publishes ? published_kind_ : local_kind_;
  events_.push_back({GlobalSequence{sequence},
                     name,
                     StreamVersion{1},
                     kind,
                     id,
                     clock_.now(),
                     {},
                     {},
                     {},
                     {},
                     "{}"});
  const PartitionId partition = PartitionId::of(name.name(), generations_.back().partition_count);
  truth_.on_append(sequence, stream, publishes, events_.back().id.to_string(), partition);
  if (publishes && mutation_ == relay::Mutation::enqueue_after_commit) {
    late_.push_back(sequence);
  } else if (publishes && !replaying_) {
    partitions_[partition].waiting[sequence] = {stream, 0, 0};
  }
  if (late_.empty()) check();
}

void ModelStore::enqueue_late(bool process_lives) {
  for (const std::int64_t sequence : std::exchange(late_, {})) {
    const Truth::Event& event = truth_.event(sequence);
    if (process_lives) partitions_[event.partition].waiting[sequence] = {event.stream, 0, 0};
  }
  check();
}

std::shared_ptr<const ModelStore::Copy> ModelStore::copy() const {
  return std::make_shared<const Copy>(Copy{last_sequence(), generations_, partitions_,
                                           redeliveries_, last_redelivery_, parked_, discarded_,
                                           workers_});
}

std::int64_t ModelStore::last_sequence_of(const Copy& copy) noexcept {
  return copy.last_sequence;
}

void ModelStore::restore(const Copy& copy) {
  while (last_sequence() > copy.last_sequence) events_.pop_back();
  generations_ = copy.generations;
  partitions_ = copy.partitions;
  redeliveries_ = copy.redeliveries;
  last_redelivery_ = copy.last_redelivery;
  parked_ = copy.parked;
  discarded_ = copy.discarded;
  workers_ = copy.workers;
}

/// Invariant 1: what waits, behind what is parked or again, is all that isn't done with.
void ModelStore::check() const {
  std::size_t pending = 0;
  for (const auto& [id, partition] : partitions_) pending += partition.waiting.size();
  for (const auto& [stream, messages] : parked_) pending += messages.size();
  for (const auto& [number, redelivery] : redeliveries_) pending += redelivery.republish ? 0 : 1;
  truth_.check_pending(static_cast<std::int64_t>(pending));
}

bool ModelStore::is_published(std::int64_t sequence) const {
  const StoredEvent& stored = event(sequence);
  if (!stored.publishes() || discarded_.contains(sequence)) return false;
  for (const auto& [id, partition] : partitions_) {
    if (partition.waiting.contains(sequence)) return false;
  }
  for (const auto& [stream, messages] : parked_) {
    if (messages.contains(sequence)) return false;
  }
  return std::none_of(redeliveries_.begin(), redeliveries_.end(), [&](const auto& entry) {
    return entry.second.sequence == sequence && !entry.second.republish;
  });
}

// --- what operators do

void ModelStore::enqueue_again(PartitionId partition, int generation, std::int64_t sequence,
                               std::int64_t stream, bool republish) {
  redeliveries_[++last_redelivery_] = {partition, generation, sequence, stream, republish, 0};
  partitions_[partition].redeliveries.insert(last_redelivery_);
  if (republish) {
    truth_.on_republished(sequence, last_redelivery_, generation);
  } else {
    truth_.on_sent_again(sequence, last_redelivery_, generation);
  }
}

int ModelStore::open_generation() const {
  const std::int64_t end = open_end();
  return generation_of(end == everything ? end : end - 1);
}

std::int64_t ModelStore::retry(std::int64_t stream, GlobalSequence through, std::string_view) {
  const auto parked = parked_.find(stream);
  if (parked == parked_.end() || parked->second.begin()->first > through.value()) return 0;
  // Under the generation that is being drained: later messages of the stream wait there or behind.
  const int generation = open_generation();
  const PartitionId partition =
      PartitionId::of(streams_[static_cast<std::size_t>(stream)].name(),
                      generations_[static_cast<std::size_t>(generation) - 1].partition_count);
  std::set<std::int64_t> again;
  while (!parked->second.empty() && parked->second.begin()->first <= through.value()) {
    again.insert(parked->second.begin()->first);
    parked->second.erase(parked->second.begin());
  }
  if (parked->second.empty()) parked_.erase(parked);
  const auto count = static_cast<std::int64_t>(again.size());
  // What was to be sent again already, and comes later in the stream, has to come later here too.
  std::erase_if(redeliveries_, [&](const auto& entry) {
    const auto& [number, redelivery] = entry;
    if (redelivery.stream != stream || redelivery.republish) return false;
    if (redelivery.sequence < *again.begin()) return false;
    partitions_[redelivery.partition].redeliveries.erase(number);
    again.insert(redelivery.sequence);
    return true;
  });
  for (const std::int64_t sequence : again) {
    enqueue_again(partition, generation, sequence, stream, false);
  }
  return count;
}

bool ModelStore::discard(GlobalSequence sequence, std::string_view) {
  for (auto& [stream, messages] : parked_) {
    if (messages.erase(sequence.value()) == 0) continue;
    if (messages.empty()) parked_.erase(stream);
    discarded_.insert(sequence.value());
    truth_.on_discarded(sequence.value());
    check();
    return true;
  }
  return false;
}

std::int64_t ModelStore::republish(std::span<const GlobalSequence> sequences, std::string_view) {
  std::int64_t count = 0;
  for (const GlobalSequence sequence : sequences) {
    if (!is_published(sequence.value())) continue;
    const StoredEvent& event = this->event(sequence.value());
    const int generation = open_generation();
    const PartitionId partition =
        PartitionId::of(event.stream.name(),
                        generations_[static_cast<std::size_t>(generation) - 1].partition_count);
    enqueue_again(partition, generation, sequence.value(), number_of(event.stream), true);
    ++count;
  }
  return count;
}

void ModelStore::resize(int partition_count, std::string_view) {
  generations_.push_back({last_sequence() + 1, partition_count});
  for (int i = 0; i < partition_count; ++i) partitions_[PartitionId::at(i, partition_count)];
  truth_.on_generation(static_cast<int>(generations_.size()), partition_count);
}

void ModelStore::adopt(PartitionId id, std::optional<std::uint64_t> broker_sequence,
                       std::string_view) {
  Partition& partition = partitions_[id];
  partition.stopped.clear();
  partition.adopted = true;
  partition.attempts = 0;
  partition.next_attempt_at = 0;
  if (broker_sequence) partition.broker_sequence = *broker_sequence;
}

std::optional<std::pair<std::int64_t, GlobalSequence>> ModelStore::any_parked() const {
  if (parked_.empty()) return std::nullopt;
  const auto& [stream, messages] = *parked_.begin();
  return std::pair{stream, GlobalSequence{messages.rbegin()->first}};
}

std::map<PartitionId, std::string> ModelStore::stopped() const {
  std::map<PartitionId, std::string> all;
  for (const auto& [id, partition] : partitions_) {
    if (!partition.stopped.empty()) all.emplace(id, partition.stopped);
  }
  return all;
}

std::uint64_t ModelStore::broker_sequence(PartitionId id) const {
  return partitions_.at(id).broker_sequence;
}

bool ModelStore::is_needed(PartitionId id) const {
  const int count = generations_.back().partition_count;
  const bool current = count == 1 ? id.number == 0 : id.number >= 1 && id.number <= count;
  const Partition& partition = partitions_.at(id);
  return current || !partition.waiting.empty() || !partition.redeliveries.empty();
}

std::int64_t ModelStore::number_of(const StreamId& stream) {
  return std::stoll(std::string{stream.name().substr(stream.name().find('-') + 1)});
}

std::vector<PartitionId> ModelStore::partitions() const {
  std::vector<PartitionId> all;
  for (const auto& [id, partition] : partitions_) all.push_back(id);
  return all;
}

std::string ModelStore::describe(PartitionId id) const {
  const Partition& partition = partitions_.at(id);
  return "owner '" + partition.owner + "' epoch " + std::to_string(partition.epoch) + " until " +
         std::to_string((partition.lease_until - now()) / second) + " s, " +
         std::to_string(partition.waiting.size()) + " waiting, " +
         std::to_string(partition.redeliveries.size()) + " again, through " +
         std::to_string(partition.published_through) + ", broker " +
         std::to_string(partition.broker_sequence) + ' ' + partition.stopped;
}

// --- what the relay asks

int ModelStore::generation_of(std::int64_t sequence) const {
  int found = 1;
  for (std::size_t i = 0; i < generations_.size(); ++i) {
    if (generations_[i].first_sequence <= sequence) found = static_cast<int>(i) + 1;
  }
  return found;
}

std::int64_t ModelStore::open_end() const {
  if (generations_.size() == 1) return everything;
  std::int64_t first = everything;
  for (const auto& [id, partition] : partitions_) {
    if (!partition.waiting.empty()) first = std::min(first, partition.waiting.begin()->first);
  }
  int again = std::numeric_limits<int>::max();
  for (const auto& [number, redelivery] : redeliveries_) {
    again = std::min(again, redelivery.generation);
  }
  for (std::size_t i = 1; i < generations_.size(); ++i) {
    if (first < generations_[i].first_sequence || again < static_cast<int>(i) + 1) {
      return generations_[i].first_sequence;
    }
  }
  return everything;
}

bool ModelStore::is_behind_parked(std::int64_t stream, std::int64_t sequence) const {
  const auto parked = parked_.find(stream);
  return parked != parked_.end() && parked->second.begin()->first < sequence;
}

void ModelStore::publish(PartitionId, Partition& partition, const relay::PublishedRun& run) {
  if (run.redelivery > 0) {
    redeliveries_.erase(run.redelivery);
    partition.redeliveries.erase(run.redelivery);
    truth_.on_published(run.first.value(), run.redelivery);
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
      if (messages.empty()) parked_.erase(stream);
      break;
    }
  }
  partition.waiting.erase(begin, end);
  partition.published_through = std::max(partition.published_through, run.last.value());
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
  if (message.reason == relay::ParkedMessage::Reason::behind &&
      !is_behind_parked(*stream, sequence)) {
    return enqueue_again(id, generation_of(sequence), sequence, *stream, false);
  }
  parked_[*stream][sequence] = {id, message.attempts};
  truth_.on_parked(sequence);
}

void ModelStore::skip(Partition& partition, const relay::ParkedMessage& message) {
  const auto redelivery = redeliveries_.find(message.redelivery);
  const bool republished = redelivery != redeliveries_.end() && redelivery->second.republish;
  const std::int64_t sequence = message.sequence.value();
  if (!take(partition, message)) return;
  if (republished) return truth_.on_republish_given_up(sequence);
  discarded_.insert(sequence);
  truth_.on_discarded(sequence);
}

/// One worker's way to the store.
class ModelStore::Port final : public relay::Store {
 public:
  explicit Port(ModelStore& store) noexcept : store_{store} {}

  std::string store_id() const override { return store_.id(); }

  int heartbeat(std::string_view worker, std::chrono::microseconds ttl) override {
    store_.workers_[std::string{worker}] = store_.now() + ttl.count();
    return static_cast<int>(std::erase_if(store_.workers_, [&](const auto& entry) {
      return entry.second < store_.now() - 20 * ttl.count() ||
             entry.second > store_.now() + 2 * ttl.count();
    }));
  }
  void leave(std::string_view worker) noexcept override {
    store_.workers_.erase(std::string{worker});
  }

  relay::Overview look(std::chrono::microseconds lease_ttl,
                       std::chrono::microseconds heartbeat_ttl) override {
    relay::Overview overview;
    const std::int64_t now = store_.now();
    for (const auto& [id, partition] : store_.partitions_) {
      const bool has_owner = !partition.owner.empty();
      const bool over = is_over(partition, now, lease_ttl.count());
      overview.partitions.push_back({.id = id,
                                     .owner = partition.owner,
                                     .is_free = !has_owner || over,
                                     .is_expired = has_owner && over,
                                     .is_stopped = !partition.stopped.empty(),
                                     .is_needed = store_.is_needed(id)});
    }
    for (const auto& [worker, until] : store_.workers_) {
      if (until > now && until <= now + 2 * heartbeat_ttl.count()) {
        overview.workers.push_back(worker);
      }
    }
    return overview;
  }

  std::optional<relay::Standing> acquire(PartitionId id, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    Partition& partition = store_.partitions_.at(id);
    const std::int64_t now = store_.now();
    const bool has_owner = !partition.owner.empty();
    if (!partition.stopped.empty()) return std::nullopt;
    if (has_owner && !is_over(partition, now, ttl.count())) return std::nullopt;
    partition.owner = worker;
    partition.lease_until = now + ttl.count();
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
                                            int limit) override {
    auto batch = std::make_unique<PointingBatch>();
    const Partition& partition = store_.partitions_.at(id);
    for (auto it = partition.redeliveries.upper_bound(cursor.redelivery);
         it != partition.redeliveries.end() && left(*batch, limit); ++it) {
      const Redelivery& redelivery = store_.redeliveries_.at(*it);
      batch->messages.push_back(
          {.sequence = GlobalSequence{redelivery.sequence},
           .stream = redelivery.stream,
           .redelivery = *it,
           .attempts = redelivery.attempts,
           .is_behind_parked = store_.is_behind_parked(redelivery.stream, redelivery.sequence),
           .is_republished = redelivery.republish,
           .event = &store_.event(redelivery.sequence)});
    }
    const std::int64_t end = store_.open_end();
    for (auto it = partition.waiting.upper_bound(cursor.sequence.value());
         it != partition.waiting.end() && it->first < end && left(*batch, limit); ++it) {
      batch->messages.push_back(
          {.sequence = GlobalSequence{it->first},
           .stream = it->second.stream,
           .attempts = it->second.attempts,
           .backoff_left = std::chrono::microseconds{std::max<std::int64_t>(
               it->second.next_attempt_at - store_.now(), 0)},
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
      waiting->second.next_attempt_at =
          trouble.message_backoff.count() > 0 ? store_.now() + trouble.message_backoff.count() : 0;
    }
    return true;
  }

  bool stop(const relay::Lease& lease, std::string_view reason, std::string_view) override {
    Partition& partition = store_.partitions_.at(lease.partition);
    if (!holds(partition, lease)) return false;
    partition.stopped = reason;
    return true;
  }

 private:
  static bool is_over(const Partition& partition, std::int64_t now, std::int64_t ttl) noexcept {
    return partition.lease_until <= now || partition.lease_until > now + 2 * ttl;
  }
  bool holds(const Partition& partition, const relay::Lease& lease) const noexcept {
    const relay::Mutation mutation = store_.mutation_;
    const bool unchecked = mutation == relay::Mutation::no_epoch_in_mark ||
                           mutation == relay::Mutation::empty_list_means_all;
    if (lease.epoch <= 0 && unchecked) return true;
    return partition.owner == lease.owner && partition.epoch == lease.epoch;
  }
  static bool left(const relay::PendingBatch& batch, int limit) noexcept {
    return static_cast<int>(batch.messages.size()) < limit;
  }

  ModelStore& store_;
};

std::unique_ptr<relay::Store> ModelStore::port() {
  return std::make_unique<Port>(*this);
}

const StoredEvent& ModelStore::event(std::int64_t sequence) const {
  return events_[static_cast<std::size_t>(sequence - 1)];
}

}  // namespace stela::sim
