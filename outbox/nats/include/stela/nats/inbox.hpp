// What consumers gave up and what they missed, for operators.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/nats/export.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::nats {

/// A message that its consumer couldn't handle, kept whole.
struct DeadLetter {
  std::int64_t number = 0;
  std::string consumer = {};
  /// Where it stood at the broker.
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;
  std::string subject = {};
  std::map<std::string, std::string> headers = {};
  std::string payload = {};
  Timestamp dead_at = {};
  int attempts = 0;
  std::string error = {};
  /// An operator asked for another try, and it hasn't happened yet.
  bool is_to_retry = false;
};

/// Messages of a stream that should have come between two others and didn't.
struct Gap {
  std::int64_t number = 0;
  std::string consumer = {};
  /// The id of the store that published them.
  std::string source = {};
  std::string stream = {};
  /// The last version that was handled before.
  StreamVersion after = {};
  /// The last of those that are missing.
  StreamVersion missing = {};
  Timestamp seen_at = {};
};

/// A stream that waits in the inbox, by the first of its messages that isn't handled.
struct HeldStream {
  std::int64_t number = 0;
  std::string consumer = {};
  /// The id of the store that published it.
  std::string source = {};
  std::string stream = {};
  StreamVersion version = {};
  /// Where the message stands at the broker.
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;
  Timestamp held_at = {};
  /// When it is tried next.
  Timestamp due_at = {};
  /// How often it was tried, and with what result; 0: it waits for an earlier one that is missing.
  int attempts = 0;
  std::string error = {};
  /// How many messages of the stream wait behind it.
  std::int64_t behind = 0;
  /// An operator released it, and its consumer hasn't come to it yet.
  bool is_released = false;
};

/// What an operator wants of a held stream.
enum class HeldRelease : std::uint8_t {
  /// Try its message now; one that waits for a missing one waits no longer.
  retry,
  /// Make a dead letter of its message, and go on with those behind it.
  skip,
};

/// One consumer's part of the inbox.
struct ConsumerStatus {
  std::string consumer = {};
  std::int64_t held_streams = 0;
  std::int64_t held_messages = 0;
  /// Since when the stream waits that has waited longest.
  std::optional<Timestamp> held_since = {};
  std::int64_t dead_letters = 0;
  std::int64_t gaps = 0;

  friend bool operator==(const ConsumerStatus&, const ConsumerStatus&) = default;
};

struct InboxQuery {
  /// Empty: of all consumers.
  std::string consumer = {};
  /// Only those with a higher number: for the next page.
  std::int64_t after = 0;
  int limit = 100;
};

/// Looks at the inbox of all consumers of one database, beside the tables that they write, and
/// changes what they gave up or hold. Whatever acts on something throws NotFound if it isn't there.
/// Threads: any number at once, beside consumers.
class STELA_NATS_EXPORT InboxOperations {
 public:
  /// Brings tables of an older Stela up to date. Consumers make them: without them the inbox is
  /// empty. The store must outlive it; its handle may be moved.
  explicit InboxOperations(Store& store);

  /// Of all consumers, by name.
  std::vector<ConsumerStatus> status();

  /// In the order in which they were given up.
  std::vector<DeadLetter> dead_letters(const InboxQuery& query = {});
  /// Its consumer tries it once more, with the handlers it has then.
  void retry(std::int64_t letter);
  /// Removes it for good; its effect never happens.
  void discard(std::int64_t letter);

  std::vector<Gap> gaps(const InboxQuery& query = {});

  /// Streams that wait, in the order of their numbers.
  std::vector<HeldStream> held(const InboxQuery& query = {});
  /// Its consumer does so at its next turn.
  void release(std::int64_t held, HeldRelease how);

 private:
  Store& store_;
};

}  // namespace stela::nats
