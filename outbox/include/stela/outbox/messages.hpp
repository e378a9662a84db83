// The outbox as operators see it: messages, partitions and workers at one moment.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/query.hpp>
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

/// One message, and what is known about its event. `type` is empty if the event doesn't exist.
struct OutboxMessage {
  GlobalSequence sequence = {};
  MessageState state = MessageState::pending;
  PartitionId partition = {};
  std::string stream = {};
  StreamVersion version = {};
  EventId event_id = {};
  std::string type = {};
  Timestamp recorded_at = {};
  /// Above 0 while a redelivery that an operator asked for is pending.
  std::int64_t redelivery = 0;
  int attempts = 0;
  std::optional<Timestamp> next_attempt_at = {};
  /// Set if the message is parked or discarded.
  std::optional<SetAsideReason> reason = {};
  std::string last_error = {};
  /// What kind of trouble a parked or discarded message met. Unset if it only follows another one.
  std::optional<FailureClass> failure = {};
  /// When it was parked, discarded or published. For published messages it is known while the log
  /// of batches is kept.
  std::optional<Timestamp> since = {};
  /// The broker's sequence of its last publication, or the range that contains it. 0 if unknown.
  std::uint64_t broker_from = 0;
  std::uint64_t broker_to = 0;
};

struct MessageQuery {
  /// Unset: pending (in flight and retrying too) and parked messages.
  std::optional<MessageState> state = {};
  std::optional<PartitionId> partition = {};
  /// A stream's name. Empty: all streams.
  std::string stream = {};
  /// An event's type. Empty: all types.
  std::string type = {};
  /// Only messages whose last error contains this text. Empty: all.
  std::string error = {};
  /// Only messages of events that were recorded since, or until.
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
  /// Both ends are included.
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  Direction direction = Direction::forward;
  /// Only messages that come after this one in the direction; 0: all.
  GlobalSequence after = {};
  int limit = 100;
  /// Filters have no index: this limits the rows examined, apart from a few for each match.
  std::int64_t most_looked = no_limit;
};

struct MessagePage {
  std::vector<OutboxMessage> messages = {};
  /// How many rows were examined.
  std::int64_t looked = 0;
  /// There may be more after this sequence. Unset: there are no more.
  std::optional<GlobalSequence> next = {};
};

/// The most pending messages counted in each partition: counting visits each of them.
inline constexpr std::int64_t most_counted_pending = 10'000;

struct PartitionStatus {
  PartitionId id = {};
  /// The worker that holds it; empty if there is none.
  std::string owner = {};
  std::int64_t epoch = 0;
  /// Zero or negative if the lease has run out.
  std::chrono::microseconds lease_left{0};
  /// Whether it belongs to the current generation. Partitions of older ones exist until they are
  /// drained.
  bool is_current = true;
  /// Pending messages, including those in flight and retrying. If they are more than
  /// `most_counted_pending`, it is that number, and a lower bound.
  std::int64_t pending = 0;
  bool is_pending_lower_bound = false;
  std::int64_t in_flight = 0;
  std::int64_t retrying = 0;
  /// Pending redeliveries that operators asked for. `pending` doesn't count them.
  std::int64_t redeliveries = 0;
  std::int64_t parked = 0;
  std::int64_t discarded = 0;
  std::int64_t published = 0;
  /// The oldest pending message, and when its event was recorded.
  std::optional<GlobalSequence> oldest = {};
  std::optional<Timestamp> oldest_recorded_at = {};
  /// Since when something has been pending: since its event was recorded, or since an operator
  /// asked for its redelivery.
  std::optional<Timestamp> waiting_since = {};
  GlobalSequence published_through = {};
  std::uint64_t broker_sequence = 0;
  /// How many times in a row it has backed off, since when, and when it is tried next.
  int attempts = 0;
  std::optional<Timestamp> backing_since = {};
  std::optional<Timestamp> next_attempt_at = {};
  std::string last_error = {};
  /// What kind of trouble it backs off from, or stopped its poison. Unset if it does neither.
  std::optional<FailureClass> failure = {};
  /// Why the partition is stopped; unset if it isn't. A stopped partition publishes nothing until
  /// an operator acts. The detail is for people; for an unrecognized reason it begins with the
  /// stored word.
  std::optional<StopReason> stopped = {};
  std::string stopped_detail = {};
  std::optional<Timestamp> stopped_at = {};
  /// Since when the broker may lack published messages: the partition was adopted, and hasn't been
  /// fully compared with the broker since.
  std::optional<Timestamp> uncompared_since = {};
  /// The first message of its stream at the last full comparison; 1 if there was none.
  std::uint64_t broker_first = 1;
  /// How long it has waited for an acknowledgement while messages are in flight. Unset if none are.
  std::optional<std::chrono::microseconds> flight_age = {};
};

struct WorkerStatus {
  std::string name = {};
  std::string host = {};
  std::int64_t pid = 0;
  Timestamp started_at = {};
  Timestamp heartbeat_until = {};
  /// From a heartbeat to its end.
  std::chrono::microseconds heartbeat_ttl{0};
  /// Its heartbeat hasn't expired and doesn't end absurdly late, and its process isn't known to
  /// have ended.
  bool is_alive = false;
  /// A worker whose process runs although it isn't alive hangs, or can't write to the database.
  WorkerProcess process = WorkerProcess::unknown;
  int partitions = 0;
  /// How it saw its broker at its last heartbeat. Unset if it hasn't reported that.
  std::optional<BrokerStatus> broker = {};
  /// When it first reported this.
  std::optional<Timestamp> broker_since = {};
  /// It has been cut off from its broker for so long that it leaves its partitions to others.
  bool is_cut_off = false;
};

struct GenerationStatus {
  std::int64_t number = 0;
  GlobalSequence first_sequence = {};
  int partition_count = 0;
  /// Neither this generation nor an older one has pending messages.
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
  // Totals of all partitions. The counts of past actions, from `discarded` to `takeovers`, include
  // retired partitions and never fall. `pending` excludes `redeliveries`, and is a lower bound if
  // that of any partition is.
  std::int64_t pending = 0;
  bool is_pending_lower_bound = false;
  std::int64_t in_flight = 0;
  std::int64_t retrying = 0;
  std::int64_t redeliveries = 0;
  std::int64_t parked = 0;
  std::int64_t discarded = 0;
  std::int64_t published = 0;
  /// How often publishing failed, and how often a worker took a partition from another.
  std::int64_t failures = 0;
  std::int64_t takeovers = 0;
  /// When the parked message with the highest sequence was parked.
  std::optional<Timestamp> last_parked_at = {};
  int stopped = 0;
  /// How long the oldest message has been pending. Unset if none is.
  std::optional<std::chrono::microseconds> lag = {};
};

/// A row of the log of batches: messages that were published one after the other.
struct PublishedBatch {
  PartitionId partition = {};
  GlobalSequence first = {};
  GlobalSequence last = {};
  std::int64_t count = 0;
  /// 0 for new messages; -1 for an event that was imported from the broker.
  std::int64_t redelivery = 0;
  Timestamp published_at = {};
  std::uint64_t first_broker = 0;
  std::uint64_t last_broker = 0;
};

}  // namespace stela
