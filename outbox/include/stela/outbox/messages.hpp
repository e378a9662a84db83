// The outbox as operators see it: its messages, partitions and workers at one moment.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/uuid.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/states.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stela {

/// One message, and what is known of its event. Of an event that doesn't exist `type` is empty.
struct OutboxMessage {
  GlobalSequence sequence = {};
  MessageState state = MessageState::pending;
  PartitionId partition = {};
  std::string stream = {};
  StreamVersion version = {};
  EventId event_id = {};
  std::string type = {};
  Timestamp recorded_at = {};
  /// Set while an operator's wish to have it sent again waits.
  std::int64_t redelivery = 0;
  int attempts = 0;
  std::optional<Timestamp> next_attempt_at = {};
  /// Unset unless it was parked or discarded.
  std::optional<SetAsideReason> reason = {};
  std::string last_error = {};
  /// When it was parked, discarded, or published: the last as long as the log of batches is kept.
  std::optional<Timestamp> since = {};
};

struct MessageQuery {
  /// Unset: everything that waits or is parked.
  std::optional<MessageState> state = {};
  std::optional<PartitionId> partition = {};
  /// A stream's name; empty: all.
  std::string stream = {};
  /// An event's type; empty: any.
  std::string type = {};
  /// Only messages whose last error contains it; empty: all.
  std::string error = {};
  /// Messages behind this one.
  GlobalSequence after = {};
  int limit = 100;
};

struct PartitionStatus {
  PartitionId id = {};
  /// Empty if nobody has it.
  std::string owner = {};
  std::int64_t epoch = 0;
  /// Not positive: the lease ran out.
  std::chrono::microseconds lease_left{0};
  /// It belongs to the current generation; else it is only there until it is drained.
  bool is_current = true;
  /// Messages that wait, those in flight and retrying among them.
  std::int64_t pending = 0;
  std::int64_t in_flight = 0;
  std::int64_t retrying = 0;
  /// What operators had sent again, and waits; `pending` leaves it out.
  std::int64_t redeliveries = 0;
  std::int64_t parked = 0;
  std::int64_t discarded = 0;
  std::int64_t published = 0;
  /// The first message that waits, and when its event was recorded.
  std::optional<GlobalSequence> oldest = {};
  std::optional<Timestamp> oldest_recorded_at = {};
  /// Since when anything has been waiting: since its event was recorded, or since an operator had
  /// it sent again.
  std::optional<Timestamp> waiting_since = {};
  GlobalSequence published_through = {};
  std::uint64_t broker_sequence = 0;
  /// How often in a row it was backed off, and when it is tried again.
  int attempts = 0;
  std::optional<Timestamp> next_attempt_at = {};
  std::string last_error = {};
  /// Unset if it may be published; otherwise nobody does until an operator does something. The
  /// detail is for people; of an unrecognized reason it begins with the word that was stored.
  std::optional<StopReason> stopped = {};
  std::string stopped_detail = {};
  /// When an operator adopted it after the broker had lost messages, until `compare` has looked at
  /// all events or an operator accepts the loss; and how many were lost at most, which its next
  /// owner finds out.
  std::optional<Timestamp> lost_at = {};
  std::int64_t lost = 0;
  /// Whether anything was lost at all its next owner is yet to check: it takes `lost_at` back if
  /// not.
  bool is_loss_supposed = false;
  /// How long nothing of what is in flight was acknowledged; unset if nothing is in flight.
  std::optional<std::chrono::microseconds> flight_age = {};
};

struct WorkerStatus {
  std::string name = {};
  std::string host = {};
  std::int64_t pid = 0;
  Timestamp started_at = {};
  Timestamp heartbeat_until = {};
  /// Its heartbeat hasn't run out.
  bool is_alive = false;
  /// A worker that runs and isn't alive hangs, or can't write to the database.
  WorkerProcess process = WorkerProcess::unknown;
  int partitions = 0;
  /// How it saw its broker at its last heartbeat, in words; empty if it hasn't said.
  std::string broker = {};
  /// It hasn't reached its broker for so long that it leaves its partitions to others.
  bool is_cut_off = false;
};

struct GenerationStatus {
  std::int64_t number = 0;
  GlobalSequence first_sequence = {};
  int partition_count = 0;
  /// Nothing of it, or of an older one, waits.
  bool is_drained = false;
};

struct OutboxStatus {
  Timestamp at = {};
  Fence fence = Fence::stream;
  bool leasing = true;
  std::string partitioner = {};
  int partition_count = 0;
  std::vector<PartitionStatus> partitions = {};
  std::vector<WorkerStatus> workers = {};
  std::vector<GenerationStatus> generations = {};
  // Of all partitions. As many wait as are pending and redeliveries together.
  std::int64_t pending = 0;
  std::int64_t in_flight = 0;
  std::int64_t retrying = 0;
  std::int64_t redeliveries = 0;
  std::int64_t parked = 0;
  std::int64_t discarded = 0;
  std::int64_t published = 0;
  int stopped = 0;
  /// Partitions adopted after a loss that nobody has looked into, and how many messages at most.
  int losses = 0;
  std::int64_t lost = 0;
  /// How long the oldest message has been waiting; unset if none waits.
  std::optional<std::chrono::microseconds> lag = {};
};

/// A row of the log of batches: messages that were published one behind the other.
struct PublishedBatch {
  PartitionId partition = {};
  GlobalSequence first = {};
  GlobalSequence last = {};
  std::int64_t count = 0;
  std::int64_t redelivery = 0;
  Timestamp published_at = {};
  std::uint64_t first_broker = 0;
  std::uint64_t last_broker = 0;
};

/// Something that an operator did.
struct OperatorAction {
  std::int64_t number = 0;
  Timestamp at = {};
  std::string who = {};
  std::string what = {};
  std::string detail = {};
};

}  // namespace stela
