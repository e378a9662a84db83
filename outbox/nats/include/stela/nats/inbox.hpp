// What consumers gave up and what they missed, for operators.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/nats/export.hpp>

#include <cstdint>
#include <map>
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

struct InboxQuery {
  /// Empty: of all consumers.
  std::string consumer = {};
  /// Only those with a higher number: for the next page.
  std::int64_t after = 0;
  int limit = 100;
};

/// The inbox of all consumers of one database, beside the tables that they write.
/// Threads: any number at once.
class STELA_NATS_EXPORT Inbox {
 public:
  /// Makes the tables if they aren't there. `store` must outlive the inbox.
  explicit Inbox(sqlite::Store& store);

  /// In the order in which they were given up.
  std::vector<DeadLetter> dead_letters(const InboxQuery& query = {});
  /// Its consumer tries it once more, with the handlers it has then. False if there is no such
  /// letter.
  bool retry(std::int64_t letter);
  /// Removes it for good; its effect never happens. False if there is no such letter.
  bool discard(std::int64_t letter);

  std::vector<Gap> gaps(const InboxQuery& query = {});

 private:
  sqlite::Store& store_;
};

}  // namespace stela::nats
