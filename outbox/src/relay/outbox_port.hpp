// The relay's port to the outbox tables.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/uuid.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/states.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::relay {

/// A worker's hold on a partition: named in every change that it makes.
struct Lease {
  PartitionId partition = {};
  std::string_view owner = {};
  std::int64_t epoch = 0;
  /// The server's run in which it was taken. The lease ends with it: after a failover the owner's
  /// row may be there, and events that it has published aren't.
  Uuid run = {};
};

/// What a new owner finds.
struct Standing {
  std::int64_t epoch = 0;
  Uuid run = {};
  GlobalSequence published_through = {};
  std::uint64_t broker_sequence = 0;
  std::string broker_id = {};
  /// The owner before didn't release it; it had this many messages in flight, up to this sequence.
  bool unclean = false;
  std::int64_t flight_count = 0;
  GlobalSequence flight_through = {};
  /// How often the partition was backed off in a row, and how long it still is.
  int attempts = 0;
  std::chrono::microseconds backoff_left{0};
  /// An operator said that what stands at the broker is to be taken as it is.
  bool adopted = false;
};

/// Everybody's partitions and workers, at one time.
struct Overview {
  struct Partition {
    PartitionId id = {};
    std::string owner = {};
    /// Nobody holds it: free, expired, or with a lease that ends absurdly late.
    bool is_free = true;
    /// It has an owner whose lease ran out.
    bool is_expired = false;
    bool is_stopped = false;
    /// It is stopped because the broker lost messages: it may have them again.
    bool is_lost = false;
    /// Of the current generation, or something of an older one still waits in it, or it is adopted
    /// and nobody has looked at the broker since.
    bool is_needed = true;
    /// It is backed off, and an operator said that it is to try at once.
    bool is_to_retry = false;
  };
  std::vector<Partition> partitions;
  /// Those with a valid heartbeat, by name. One that lasts absurdly long isn't valid: it is of a
  /// clock that was wrong.
  std::vector<std::string> workers;
  /// Those of them that can't reach the broker.
  std::vector<std::string> cut_off;
};

/// How a worker sees its broker.
struct BrokerView {
  BrokerStatus status = {};
  /// It hasn't been connected for so long that others had better do its work.
  bool is_cut_off = false;
};

/// A message as `next` hands it out.
struct PendingMessage {
  GlobalSequence sequence = {};
  /// The number of its stream in the database.
  std::int64_t stream = 0;
  /// 0 unless an operator had it sent again.
  std::int64_t redelivery = 0;
  /// What it is published under: its event's own, or the one under which an operator had it sent
  /// again.
  GenerationMark generation = {};
  int attempts = 0;
  /// Its stream has parked messages: this one has to join them.
  bool is_behind_parked = false;
  /// Sent again though it was published before: its message id must be a new one.
  bool is_republished = false;
  /// Published before and lost by the broker: not published any more, and its message id must be a
  /// new one, too.
  bool was_lost = false;
  /// Null if the event can't be read; then `problem` says why.
  const StoredEvent* event = nullptr;
  std::string problem = {};
};

/// Messages and what their events point to; valid as long as it lives.
class PendingBatch {
 public:
  virtual ~PendingBatch() = default;
  std::vector<PendingMessage> messages;
};

/// How much is read at once: so many messages, and payloads of so many bytes, or one message.
struct BatchLimit {
  int messages = 0;
  std::int64_t bytes = INT64_MAX;
};

/// How far a reader of a partition is: behind these.
struct Cursor {
  std::int64_t redelivery = 0;
  GlobalSequence sequence = {};
};

/// A run of messages that stand at the broker one behind the other.
struct PublishedRun {
  GlobalSequence first = {};
  GlobalSequence last = {};
  std::int64_t count = 0;
  std::int64_t redelivery = 0;
  std::uint64_t first_broker = 0;
  std::uint64_t last_broker = 0;
};

struct ParkedMessage {
  GlobalSequence sequence = {};
  std::int64_t redelivery = 0;
  using Reason = SetAsideReason;
  Reason reason = Reason::refused;
  int attempts = 0;
  std::string error = {};
  /// Unset if it only follows another one.
  std::optional<FailureClass> failure = {};
};

/// Everything that an owner notes of its partition at once, in one transaction.
struct Advance {
  std::vector<PublishedRun> published = {};
  std::vector<ParkedMessage> parked = {};
  /// Not published and not wanted any more (`on_poison = skip`).
  std::vector<ParkedMessage> skipped = {};
  /// The last message of the partition at the broker; unchanged if unset.
  std::optional<std::uint64_t> broker_sequence = {};
  std::string broker_id = {};
  /// What is about to be in flight, all of it.
  std::int64_t flight_count = 0;
  GlobalSequence flight_through = {};
};

/// What went wrong, to be kept for a successor and for operators.
struct Trouble {
  /// Charged to this message; unset if it is nobody's fault.
  std::optional<PendingMessage> message = {};
  int message_attempts = 0;
  /// How often in a row the partition is backed off now, and for how long.
  int attempts = 0;
  std::chrono::microseconds backoff{0};
  std::string error = {};
  /// Unset if nothing is wrong with the partition.
  std::optional<FailureClass> failure = {};
};

/// Short synchronous calls. All throw Error: StoreBusy and StoreFull are to be tried again.
/// Threads: one at a time.
class OutboxPort {
 public:
  virtual ~OutboxPort() = default;

  /// What the store is, for the headers of its messages.
  virtual std::string store_id() const = 0;

  /// Notes that the worker lives for `ttl` from now and how it sees the broker, and removes workers
  /// that have been dead for long. How many were removed. UsageError if another worker of its name
  /// lives, as far as can be seen.
  virtual int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                        const BrokerView& broker) = 0;
  /// The worker leaves. Another one that has its name stays.
  virtual void leave(std::string_view worker) noexcept = 0;
  virtual Overview look() = 0;

  /// The lease, unless somebody else holds it.
  virtual std::optional<Standing> acquire(PartitionId partition, std::string_view worker,
                                          std::chrono::microseconds ttl) = 0;
  /// The same of a partition that is stopped because the broker lost messages, to look whether it
  /// has them again. Nothing is published under this lease.
  virtual std::optional<Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                               std::chrono::microseconds ttl) = 0;
  /// False if it is lost.
  virtual bool renew(const Lease& lease, std::chrono::microseconds ttl) = 0;
  virtual void release(const Lease& lease) = 0;

  /// What is next behind `cursor`: first what operators had sent again, then what waits, both in
  /// order. Nothing of a generation whose predecessors aren't drained.
  virtual std::unique_ptr<PendingBatch> next(PartitionId partition, const Cursor& cursor,
                                             const BatchLimit& limit) = 0;

  /// The ids of these events; nil for those that don't exist.
  virtual std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) = 0;

  // The rest changes a partition under its lease: false if it is lost, and nothing was changed.

  /// `durable`: return only when it is on the disk, and everything committed before it.
  virtual bool advance(const Lease& lease, const Advance& advance, bool durable) = 0;
  virtual bool note(const Lease& lease, const Trouble& trouble) = 0;
  /// Nobody publishes it until an operator adopts it again.
  virtual bool stop(const Lease& lease, StopReason reason, std::string_view detail) = 0;
  /// The broker has the end of what it seemed to have lost: the partition isn't stopped any more.
  virtual bool continue_lost(const Lease& lease) = 0;
};

}  // namespace stela::relay
