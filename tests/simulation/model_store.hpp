// The outbox as maps: what the SQLite store has to do, without SQL.
#pragma once

#include "mutants/mutant.hpp"
#include "relay/operations_port.hpp"
#include "relay/outbox_port.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <stela/framework/stored_event.hpp>

#include <boost/container/flat_map.hpp>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace stela::sim {

using mutants::Mutant;

/// What all workers share. Each works on it through a port of its own.
/// Threads: one.
class ModelStore final : public relay::Operations {
 public:
  ModelStore(const Clock& clock, Truth& truth, int partition_count, Chance& chance,
             Mutant mutant = Mutant::none);
  ~ModelStore() override;

  /// Appends one event to a stream.
  void append(int stream, bool publishes, std::int64_t payload_bytes);
  /// As above, where the store chose the id.
  void append(int stream, bool publishes, std::int64_t payload_bytes, const EventId& id);
  /// JSON of so many bytes: 2, or up to 64 KiB.
  static std::string_view payload_of(std::int64_t bytes);
  /// What a process does after the commit, for a store that is made to be wrong.
  void enqueue_late(bool process_lives);
  /// A replay ran, and its handler threw.
  void on_failed_replay() noexcept { replaying_ = mutant_ == Mutant::replay_flag_left_on; }

  /// Everything but the truth of it, to go back to.
  struct Copy;
  std::shared_ptr<const Copy> copy() const;
  void restore(const Copy& copy);
  static std::int64_t last_sequence_of(const Copy& copy) noexcept;

  /// A worker's port.
  std::unique_ptr<relay::OutboxPort> port();
  std::string id() const;
  std::int64_t last_sequence() const noexcept { return static_cast<std::int64_t>(events_.size()); }

  std::int64_t retry(std::int64_t stream, GlobalSequence through, std::string_view who) override;
  bool discard(GlobalSequence sequence, std::string_view who) override;
  std::int64_t republish(std::span<const GlobalSequence> sequences, std::string_view who) override;
  void resize(int partition_count, std::string_view who) override;
  void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
             std::string_view who) override;

  /// A parked message, if there is one: for the nemesis to act on.
  std::optional<std::pair<std::int64_t, GlobalSequence>> any_parked() const;
  /// And why.
  std::map<PartitionId, std::string> stopped() const;
  std::vector<PartitionId> partitions() const;
  /// Where the partition stands at the broker, as far as is marked.
  std::uint64_t broker_sequence(PartitionId partition) const;
  EventId event_id(std::int64_t sequence) const { return event(sequence).id; }
  bool is_needed(PartitionId partition) const;
  /// An operator adopted it, and nobody has looked at the broker since.
  bool is_adopted(PartitionId partition) const { return partitions_.at(partition).adopted; }
  /// The payloads of what waits.
  std::int64_t waiting_bytes() const;
  /// A partition in one line.
  std::string describe(PartitionId partition) const;

 private:
  class Port;

  struct Message {
    std::int64_t stream = 0;
    int attempts = 0;
  };
  struct Redelivery {
    PartitionId partition = {};
    int generation = 0;
    std::int64_t sequence = 0;
    std::int64_t stream = 0;
    bool republish = false;
    int attempts = 0;
  };
  struct Parked {
    PartitionId partition = {};
    int attempts = 0;
    bool is_behind = false;
  };
  struct Partition {
    std::string owner;
    std::int64_t epoch = 0;
    std::int64_t lease_until = 0;
    std::int64_t lease_ttl = 0;
    std::int64_t published_through = 0;
    std::uint64_t broker_sequence = 0;
    std::string broker_id;
    std::int64_t flight_count = 0;
    std::int64_t flight_through = 0;
    int attempts = 0;
    std::int64_t next_attempt_at = 0;
    std::string stopped;
    bool adopted = false;
    std::map<std::int64_t, Message> waiting;
    std::set<std::int64_t> redeliveries;
  };
  struct Generation {
    std::int64_t first_sequence = 1;
    int partition_count = 1;
  };

  const StoredEvent& event(std::int64_t sequence) const;
  std::int64_t now() const { return clock_.now().time_since_epoch().count(); }
  std::int64_t open_end() const;
  /// The oldest one that still has something to publish; the newest if none has.
  int open_generation() const;
  bool is_behind_parked(std::int64_t stream, std::int64_t sequence) const;
  int generation_of(std::int64_t sequence) const;
  GenerationMark mark_of(int generation) const;
  void enqueue_again(PartitionId partition, int generation, std::int64_t sequence,
                     std::int64_t stream, bool republish);
  void publish(PartitionId id, Partition& partition, const relay::PublishedRun& run);
  void park(PartitionId id, Partition& partition, const relay::ParkedMessage& message);
  void send_followers(std::int64_t stream);
  void skip(Partition& partition, const relay::ParkedMessage& message);
  std::optional<std::int64_t> take(Partition& partition, const relay::ParkedMessage& message);
  bool is_published(std::int64_t sequence) const;
  static std::int64_t number_of(const StreamId& stream);
  void check() const;

  const Clock& clock_;
  Truth& truth_;
  const Mutant mutant_;
  bool replaying_ = false;
  std::vector<std::int64_t> late_;
  UuidGenerator ids_;
  std::deque<StreamId> streams_;
  EventKind published_kind_{1, "thing.happened", 1, true};
  EventKind local_kind_{2, "thing.noted", 1, false};
  std::deque<StoredEvent> events_;
  std::vector<Generation> generations_;
  boost::container::flat_map<PartitionId, Partition> partitions_;
  std::map<std::int64_t, Redelivery> redeliveries_;
  std::int64_t last_redelivery_ = 0;
  std::map<std::int64_t, std::map<std::int64_t, Parked>> parked_;
  std::set<std::int64_t> discarded_;
  struct Worker {
    std::int64_t until = 0;
    std::int64_t ttl = 0;
    bool is_cut_off = false;
  };
  std::map<std::string, Worker> workers_;
};

}  // namespace stela::sim
