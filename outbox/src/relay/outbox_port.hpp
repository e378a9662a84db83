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

/// A worker's hold on a partition, named in every change that the worker makes.
struct Lease {
  PartitionId partition = {};
  std::string_view owner = {};
  std::int64_t epoch = 0;
  /// The server's run in which it was taken. The lease ends with the run: after a failover the
  /// owner's row may exist while events that it published don't.
  Uuid run = {};
};

/// The state that a new owner finds.
struct Standing {
  std::int64_t epoch = 0;
  Uuid run = {};
  GlobalSequence published_through = {};
  std::uint64_t broker_sequence = 0;
  std::string broker_id = {};
  /// The previous owner didn't release it, and had this many messages in flight, up to this
  /// sequence.
  bool unclean = false;
  std::int64_t flight_count = 0;
  GlobalSequence flight_through = {};
  /// How many times in a row the partition has backed off, and the rest of its back-off.
  int attempts = 0;
  std::chrono::microseconds backoff_left{0};
  /// An operator decided to accept the broker's messages as they are.
  bool adopted = false;
};

/// All partitions and workers at one moment.
struct Overview {
  struct Partition {
    PartitionId id = {};
    std::string owner = {};
    /// It has no owner, an expired lease, or a lease that ends absurdly late.
    bool is_free = true;
    /// Its owner's lease has run out.
    bool is_expired = false;
    bool is_stopped = false;
    /// It is stopped because the broker lost messages, which may be back.
    bool is_lost = false;
    /// It is in the current generation, has pending messages of an older one, or is adopted and not
    /// yet compared with the broker.
    bool is_needed = true;
    /// It is backing off, and an operator wants it to try at once.
    bool is_to_retry = false;
  };
  std::vector<Partition> partitions;
  /// Workers with a valid heartbeat, by name. One that ends absurdly late is invalid: it comes from
  /// a wrong clock.
  std::vector<std::string> workers;
  /// The workers among them that can't reach the broker.
  std::vector<std::string> cut_off;
};

/// How a worker sees its broker.
struct BrokerView {
  BrokerStatus status = {};
  /// It has been disconnected for so long that others should do its work.
  bool is_cut_off = false;
};

/// A message from `next`.
struct PendingMessage {
  GlobalSequence sequence = {};
  /// The number of its event stream in the database.
  std::int64_t stream = 0;
  /// 0 unless an operator requested a redelivery.
  std::int64_t redelivery = 0;
  /// The generation that it is published under: its event's own, or the one of its redelivery.
  GenerationMark generation = {};
  int attempts = 0;
  /// Its stream has parked messages, which it must join.
  bool is_behind_parked = false;
  /// It was published before and is sent again, so it needs a new message id.
  bool is_republished = false;
  /// It was published and then lost by the broker: it no longer counts as published, and also needs
  /// a new message id.
  bool was_lost = false;
  /// Null if the event can't be read; then `problem` says why.
  const StoredEvent* event = nullptr;
  std::string problem = {};
};

/// Messages and the events that they point to; valid as long as the batch lives.
class PendingBatch {
 public:
  virtual ~PendingBatch() = default;
  std::vector<PendingMessage> messages;
};

/// The limits of one read: messages, and payload bytes, though at least one message.
struct BatchLimit {
  int messages = 0;
  std::int64_t bytes = INT64_MAX;
};

/// A reader's position in a partition: after these.
struct Cursor {
  std::int64_t redelivery = 0;
  GlobalSequence sequence = {};
};

/// A run of adjacent messages at the broker.
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
  /// Unset if it only follows another message.
  std::optional<FailureClass> failure = {};
};

/// All changes of a partition that its owner records in one transaction.
struct Advance {
  std::vector<PublishedRun> published = {};
  std::vector<ParkedMessage> parked = {};
  /// Unpublished and no longer wanted (`on_poison = skip`).
  std::vector<ParkedMessage> skipped = {};
  /// The partition's last message at the broker; unchanged if unset.
  std::optional<std::uint64_t> broker_sequence = {};
  std::string broker_id = {};
  /// Everything that is about to be in flight.
  std::int64_t flight_count = 0;
  GlobalSequence flight_through = {};
};

/// A failure, kept for a successor and for operators.
struct Trouble {
  /// Charged to this message; unset if no message is at fault.
  std::optional<PendingMessage> message = {};
  int message_attempts = 0;
  /// How many times in a row the partition has backed off, and for how long now.
  int attempts = 0;
  std::chrono::microseconds backoff{0};
  std::string error = {};
  /// Unset if nothing is wrong with the partition.
  std::optional<FailureClass> failure = {};
};

/// Short synchronous calls. All throw Error; StoreBusy and StoreFull should be retried.
/// Threads: one at a time.
class OutboxPort {
 public:
  virtual ~OutboxPort() = default;

  /// The store's id, for the headers of its messages.
  virtual std::string store_id() const = 0;

  /// Records that the worker lives for `ttl` from now and how it sees the broker, and removes
  /// workers that have long been dead. Returns how many. UsageError if another worker of this name
  /// is seen to be alive.
  virtual int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                        const BrokerView& broker) = 0;
  /// The worker leaves. Another worker with its name is unaffected.
  virtual void leave(std::string_view worker) noexcept = 0;
  virtual Overview look() = 0;

  /// Takes the lease, unless another worker holds it.
  virtual std::optional<Standing> acquire(PartitionId partition, std::string_view worker,
                                          std::chrono::microseconds ttl) = 0;
  /// The same for a partition that is stopped because the broker lost messages, to look for them.
  /// Nothing is published under this lease.
  virtual std::optional<Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                               std::chrono::microseconds ttl) = 0;
  /// False if the lease is lost.
  virtual bool renew(const Lease& lease, std::chrono::microseconds ttl) = 0;
  virtual void release(const Lease& lease) = 0;

  /// The messages after `cursor`: first redeliveries, then pending messages, both in order.
  /// Excludes generations whose predecessors aren't drained.
  virtual std::unique_ptr<PendingBatch> next(PartitionId partition, const Cursor& cursor,
                                             const BatchLimit& limit) = 0;

  /// The ids of these events; nil for those that don't exist.
  virtual std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) = 0;

  // The following change a partition under its lease: false, without a change, if it is lost.

  /// `durable`: return only when this and everything committed before it is on the disk.
  virtual bool advance(const Lease& lease, const Advance& advance, bool durable) = 0;
  virtual bool note(const Lease& lease, const Trouble& trouble) = 0;
  /// Nobody publishes the partition until an operator adopts it.
  virtual bool stop(const Lease& lease, StopReason reason, std::string_view detail) = 0;
  /// The broker has the messages that it seemed to have lost: the partition is no longer stopped.
  virtual bool continue_lost(const Lease& lease) = 0;
};

}  // namespace stela::relay
