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

/// A message that its consumer couldn't handle, or that waits behind such a message. It is stored
/// with its headers and payload.
struct ParkedMessage {
  std::int64_t number = 0;
  std::string consumer = {};
  /// Its position at the broker.
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;
  std::string subject = {};
  /// The event's stream and id, if the headers name them.
  std::string stream = {};
  std::string event_id = {};
  /// The first value of a header that occurs several times.
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
  /// The owner's lease has run out, and nobody has taken it: no process stands by, or the owner
  /// hangs in a handler.
  bool is_overdue = false;
  /// Since when it has had no reader, if the last one ended properly.
  std::optional<Timestamp> unread_since = {};
  /// The message that can't be handled, or 0; since when it has failed or halted the reader; and
  /// the error.
  std::uint64_t failing = 0;
  std::optional<Timestamp> failing_since = {};
  int attempts = 0;
  Timestamp next_attempt_at = {};
  std::string error = {};
  /// Its next message waits for readers of other streams, which `error` names.
  bool is_waiting = false;
  bool is_paused = false;
  std::optional<Timestamp> paused_at = {};
};

/// One consumer, over all JetStream streams that it reads.
struct ConsumerStatus {
  std::string consumer = {};
  std::vector<ReaderStatus> readers = {};
  std::int64_t parked_messages = 0;
  /// Streams of events with parked messages.
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

/// Creates or migrates the inbox's tables, for a role that owns them while another role runs the
/// consumers. `Consumer` migrates by itself.
STELA_NATS_EXPORT void migrate_inbox(Store& store);

/// Inspects and changes the inboxes of all consumers of one database, which are next to the tables
/// that their handlers write. Operations throw NotFound if what they name doesn't exist, and
/// UsageError if its state doesn't allow them. Threads: any number at once, beside consumers.
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
  /// Lets the consumer try the message again with its current handlers, and then the messages
  /// behind it. UsageError if the message itself waits behind another.
  void retry(std::int64_t parked);
  /// Removes the message for good. Its effect never happens. The consumer handles the messages
  /// behind it.
  void discard(std::int64_t parked);

  std::vector<Gap> gaps(const InboxQuery& query = {});

  /// Stops the consumer's reading in all processes until it is resumed.
  void pause(std::string_view consumer);
  void resume(std::string_view consumer);
  /// Moves the consumer's position in the stream: it continues after `position`, and skips messages
  /// or receives them again. Creates a missing consumer: a moved database has no inbox, so the
  /// consumer would begin at the first message. UsageError if no stream can have the name.
  void move(std::string_view consumer, std::string_view broker_stream, std::uint64_t position);
  /// Forgets a stream that the consumer no longer reads, so that its readers of other streams don't
  /// wait for it. UsageError while a process reads the stream. A later reader begins as new.
  void forget(std::string_view consumer, std::string_view broker_stream);

 private:
  Store& store_;
  const std::string who_;
};

}  // namespace stela::nats
