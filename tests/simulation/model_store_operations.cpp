#include "simulation/model_store.hpp"

#include <algorithm>

namespace stela::sim {

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

std::int64_t ModelStore::retry(std::int64_t stream, GlobalSequence through, std::string_view) {
  const auto parked = parked_.find(stream);
  if (parked == parked_.end() || parked->second.begin()->first > through.value()) return 0;
  // Under the generation that is being drained: later messages of the stream wait there or behind.
  const int generation = open_generation();
  const PartitionId partition =
      PartitionId::of(streams_[static_cast<std::size_t>(stream)].name(),
                      generations_[static_cast<std::size_t>(generation) - 1].partition_count);
  std::set<std::int64_t> again;
  while (!parked->second.empty() && (parked->second.begin()->first <= through.value() ||
                                     parked->second.begin()->second.is_behind)) {
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

bool ModelStore::discard(GlobalSequence sequence, std::string_view who) {
  const auto found = std::find_if(parked_.begin(), parked_.end(), [&](const auto& entry) {
    return entry.second.contains(sequence.value());
  });
  if (found == parked_.end()) return false;
  auto& [stream, messages] = *found;
  messages.erase(sequence.value());
  discarded_.insert(sequence.value());
  truth_.on_discarded(sequence.value());
  GlobalSequence last_follower;
  for (const auto& [parked, how] : messages) {
    if (parked < sequence.value() || !how.is_behind) break;
    last_follower = GlobalSequence{parked};
  }
  if (messages.empty()) {
    parked_.erase(found);
  } else if (last_follower.value() > 0) {
    retry(stream, last_follower, who);
  }
  check();
  return true;
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

std::int64_t ModelStore::number_of(const StreamId& stream) {
  return std::stoll(std::string{stream.name().substr(stream.name().find('-') + 1)});
}

}  // namespace stela::sim
