// Operations on consumers' inboxes: dead letters, gaps and held streams.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/nats/export.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::nats {

/// A message that its consumer couldn't handle, stored with its headers and payload.
struct DeadLetter {
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
  Timestamp dead_at = {};
  int attempts = 0;
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

/// A stream that is held in the inbox, with the first of its messages that isn't handled.
struct HeldStream {
  std::int64_t number = 0;
  std::string consumer = {};
  /// The id of the store that published it.
  std::string source = {};
  std::string stream = {};
  StreamVersion version = {};
  /// The message's position at the broker.
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;
  Timestamp held_at = {};
  /// When it is tried next.
  Timestamp due_at = {};
  /// How often it was tried, and the last error. 0: it waits for a missing earlier message.
  int attempts = 0;
  std::string error = {};
  /// How many later messages of the stream it blocks.
  std::int64_t behind = 0;
  /// An operator released it, and its consumer hasn't acted on that yet.
  bool is_released = false;
};

/// How an operator releases a held stream.
enum class HeldRelease : std::uint8_t {
  /// Try its message now. Don't wait for a missing earlier one any longer.
  retry,
  /// Turn its message into a dead letter, and continue with the next one of the stream.
  skip,
};

/// One consumer's part of the inbox.
struct ConsumerStatus {
  std::string consumer = {};
  std::int64_t held_streams = 0;
  std::int64_t held_messages = 0;
  /// Since when the stream that has waited longest is held.
  std::optional<Timestamp> held_since = {};
  std::int64_t dead_letters = 0;
  std::int64_t gaps = 0;

  friend bool operator==(const ConsumerStatus&, const ConsumerStatus&) = default;
};

struct InboxQuery {
  /// Empty: all consumers.
  std::string consumer = {};
  /// Only those with a higher number: for the next page.
  std::int64_t after = 0;
  int limit = 100;
};

/// Creates or migrates the inbox's tables: for a role that owns them, where another one runs the
/// consumers. `Consumer` does so by itself.
STELA_NATS_EXPORT void migrate_inbox(Store& store);

/// Inspects and changes the inboxes of all consumers of one database, which are beside the tables
/// that they write. Operations throw NotFound if what they name doesn't exist. Threads: any number
/// at once, beside consumers.
class STELA_NATS_EXPORT InboxOperations {
 public:
  /// Migrates the tables of an older Stela. Only consumers create them: without them the inbox is
  /// empty. The store must outlive it; its handle may be moved.
  explicit InboxOperations(Store& store);

  /// All consumers, by name.
  std::vector<ConsumerStatus> status();

  /// In the order in which they became dead letters.
  std::vector<DeadLetter> dead_letters(const InboxQuery& query = {});
  /// Its consumer tries the message again, with the handlers that it has then.
  void retry(std::int64_t letter);
  /// Removes the dead letter for good. Its effect never happens.
  void discard(std::int64_t letter);

  std::vector<Gap> gaps(const InboxQuery& query = {});

  /// Held streams, in the order of their numbers.
  std::vector<HeldStream> held(const InboxQuery& query = {});
  /// Its consumer acts on it at its next turn.
  void release(std::int64_t held, HeldRelease how);

 private:
  Store& store_;
};

}  // namespace stela::nats
