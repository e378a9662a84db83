#include "simulation/model_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stela::sim {

namespace {

constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view model_store_id = "0190a000-0000-7000-8000-000000000001";

}  // namespace

struct ModelStore::Copy {
  std::int64_t last_sequence = 0;
  std::vector<Generation> generations;
  boost::container::flat_map<PartitionId, Partition> partitions;
  std::map<std::int64_t, Redelivery> redeliveries;
  std::int64_t last_redelivery = 0;
  std::map<std::int64_t, std::map<std::int64_t, Parked>> parked;
  std::set<std::int64_t> discarded;
  std::map<std::string, Worker> workers;
};

ModelStore::ModelStore(const Clock& clock, Truth& truth, int partition_count, Chance& chance,
                       Mutant mutant)
    : clock_{clock}, truth_{truth}, mutant_{mutant}, ids_{chance} {
  generations_.push_back({1, partition_count});
  for (int i = 0; i < partition_count; ++i) partitions_[PartitionId::at(i, partition_count)];
  truth_.on_generation(1, partition_count);
}

ModelStore::~ModelStore() = default;

std::string ModelStore::id() const {
  return std::string{model_store_id};
}

std::string_view ModelStore::payload_of(std::int64_t bytes) {
  static const std::string longest = [] {
    std::string text(64 * 1024, ' ');
    return text.append("{}");
  }();
  return std::string_view{longest}.substr(longest.size() - static_cast<std::size_t>(bytes));
}

void ModelStore::append(int stream, bool publishes, std::int64_t payload_bytes) {
  append(stream, publishes, payload_bytes, ids_.next(clock_.now()));
}

void ModelStore::append(int stream, bool publishes, std::int64_t payload_bytes, const EventId& id) {
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
                     payload_of(payload_bytes)});
  const PartitionId partition = PartitionId::of(name.name(), generations_.back().partition_count);
  truth_.on_append(sequence, stream, publishes, events_.back().id.to_string(), partition);
  if (publishes && mutant_ == Mutant::enqueue_after_commit) {
    late_.push_back(sequence);
  } else if (publishes && !replaying_) {
    partitions_[partition].waiting[sequence] = {stream, 0};
  }
  if (late_.empty()) check();
}

void ModelStore::enqueue_late(bool process_lives) {
  for (const std::int64_t sequence : std::exchange(late_, {})) {
    const Truth::Event& event = truth_.event(sequence);
    if (process_lives) partitions_[event.partition].waiting[sequence] = {event.stream, 0};
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
  return current || partition.adopted || !partition.waiting.empty() ||
         !partition.redeliveries.empty();
}

std::int64_t ModelStore::waiting_bytes() const {
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t sequence) { bytes += std::ssize(event(sequence).payload); };
  for (const auto& [id, partition] : partitions_) {
    for (const auto& [sequence, message] : partition.waiting) add(sequence);
  }
  for (const auto& [number, redelivery] : redeliveries_) add(redelivery.sequence);
  return bytes;
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

int ModelStore::generation_of(std::int64_t sequence) const {
  int found = 1;
  for (std::size_t i = 0; i < generations_.size(); ++i) {
    if (generations_[i].first_sequence <= sequence) found = static_cast<int>(i) + 1;
  }
  return found;
}

GenerationMark ModelStore::mark_of(int generation) const {
  const auto index = static_cast<std::size_t>(generation - 1);
  return {generation, GlobalSequence{generations_[index].first_sequence}};
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

int ModelStore::open_generation() const {
  const std::int64_t end = open_end();
  return generation_of(end == everything ? end : end - 1);
}

bool ModelStore::is_behind_parked(std::int64_t stream, std::int64_t sequence) const {
  const auto parked = parked_.find(stream);
  return parked != parked_.end() && parked->second.begin()->first < sequence;
}

const StoredEvent& ModelStore::event(std::int64_t sequence) const {
  return events_[static_cast<std::size_t>(sequence - 1)];
}

}  // namespace stela::sim
