// Operations on consumers: how far they are, parked messages and gaps.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/query.hpp>
#include <stela/nats/export.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// A message that its consumer couldn't handle, or that waits behind one of those. It is stored
/// with its headers and payload.
struct ParkedMessage {
  std::int64_t number = 0;
  std::string consumer = {};
  /// Its position at the broker.
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;
  std::string subject = {};
  /// The event's stream and id, as far as the headers name them.
  std::string stream = {};
  std::string event_id = {};
  /// Of several with one name, the first.
  std::map<std::string, std::string> headers = {};
  std::string payload = {};
  Timestamp parked_at = {};
  int attempts = 0;
  /// Empty if it waits behind an earlier one of its stream.
  std::string error = {};
  /// An operator asked for another attempt, which hasn't happened yet.
  bool is_to_retry = false;
};

/// Messages that are missing between two others of a stream.
struct Gap {
  std::int64_t number = 0;
  std::string consumer = {};
  /// The id of the store that published them.
  std::string source = {};
  std::string stream = {};
  /// The last version that was handled before the gap.
  StreamVersion after = {};
  /// The last missing version.
  StreamVersion missing = {};
  Timestamp seen_at = {};
};

/// A consumer's reading of one JetStream stream.
struct ReaderStatus {
  std::string consumer = {};
  std::string broker_stream = {};
  std::string filter = {};
  /// The last message that was handled, parked or passed over.
  std::uint64_t position = 0;
  /// The process that reads; empty if there is none.
  std::string owner = {};
  Timestamp lease_until = {};
  /// The lease of the owner is over, and nobody has taken it: no process stands by, or the owner
  /// hangs in a handler.
  bool is_overdue = false;
  /// Since when nobody reads, if the last reader ended in order.
  std::optional<Timestamp> unread_since = {};
  /// The message that couldn't be handled, or 0, and the error; since when it fails or stands
  /// still.
  std::uint64_t failing = 0;
  std::optional<Timestamp> failing_since = {};
  int attempts = 0;
  Timestamp next_attempt_at = {};
  std::string error = {};
  /// Its next message waits until readers of other streams have come as far: `error` says for
  /// which.
  bool is_waiting = false;
  bool is_paused = false;
  std::optional<Timestamp> paused_at = {};
};

/// One consumer, over all JetStream streams that it reads.
struct ConsumerStatus {
  std::string consumer = {};
  std::vector<ReaderStatus> readers = {};
  std::int64_t parked_messages = 0;
  /// Streams of events that wait.
  std::int64_t parked_streams = 0;
  std::int64_t parked_bytes = 0;
  /// When the first of them was parked.
  std::optional<Timestamp> parked_since = {};
  std::int64_t gaps = 0;
};

struct InboxQuery {
  /// Empty: all consumers.
  std::string consumer = {};
  /// By number.
  Direction direction = Direction::forward;
  /// Only those that come after this number in the direction, for the next page; 0: all.
  std::int64_t after = 0;
  int limit = 100;
};

/// Creates or migrates the inbox's tables: for a role that owns them, where another one runs the
/// consumers. `Consumer` does so by itself.
STELA_NATS_EXPORT void migrate_inbox(Store& store);

/// Inspects and changes the inboxes of all consumers of one database, which are beside the tables
/// that they write. Operations throw NotFound if what they name doesn't exist, and UsageError if
/// its state doesn't allow them. Threads: any number at once, beside consumers.
class STELA_NATS_EXPORT InboxOperations {
 public:
  /// Migrates the tables of an older Stela. Only consumers create them: without them the inbox is
  /// empty. The store must outlive it; its handle may be moved.
  /// `who` is the operator, for the journal. Empty: the user and host of the process.
  explicit InboxOperations(Store& store, std::string who = {});

  /// All consumers, by name.
  std::vector<ConsumerStatus> status();

  /// In the order in which they were parked, or the newest first.
  std::vector<ParkedMessage> parked(const InboxQuery& query = {});
  /// Its consumer tries the message again, with the handlers that it has then, and after it those
  /// that wait behind it. UsageError if it waits behind another one.
  void retry(std::int64_t parked);
  /// Removes the message for good. Its effect never happens. Its consumer handles those that wait
  /// behind it.
  void discard(std::int64_t parked);

  std::vector<Gap> gaps(const InboxQuery& query = {});

  /// The consumer reads no more in any process, until it is resumed.
  void pause(std::string_view consumer);
  void resume(std::string_view consumer);
  /// The consumer reads the stream on behind this position: messages between are passed over, or
  /// come once more if it was further. Makes the consumer if it isn't there: in a database that was
  /// moved, which doesn't take the inbox along, it would begin at the first message. UsageError if
  /// no stream can have the name.
  void move(std::string_view consumer, std::string_view broker_stream, std::uint64_t position);
  /// The consumer won't read this stream any more: its readers of other streams don't wait for it.
  /// UsageError while a process reads it. Whoever reads it later begins as new.
  void forget(std::string_view consumer, std::string_view broker_stream);

 private:
  Store& store_;
  const std::string who_;
};

}  // namespace stela::nats
