#include "tables/known_messages.hpp"

#include "database/database.hpp"
#include "outbox_sql/losses.hpp"
#include "outbox_sql/messages.hpp"

#include <cstring>
#include <string>
#include <string_view>

namespace stela::outbox {

using database::Connection;

namespace {

/// The length of the event id that a message id begins with.
constexpr std::size_t event_id_size = 36;

void add(std::string& list, std::int64_t sequence) {
  list.append(list.size() > 1 ? "," : "").append(std::to_string(sequence));
}

/// The ids of these events, if the store has them. One statement saves round trips to a server.
std::unordered_map<std::int64_t, std::string> ids_of(Connection& connection,
                                                     const std::string& sequences) {
  std::unordered_map<std::int64_t, std::string> ids;
  auto rows = connection.rows(sql::event_ids{.sequences = sequences});
  while (rows.step()) {
    EventId::Bytes bytes{};
    const std::string_view stored = rows.event_id();
    if (stored.size() != bytes.size()) continue;
    std::memcpy(bytes.data(), stored.data(), bytes.size());
    ids.emplace(rows.sequence(), EventId{bytes}.to_string());
  }
  return ids;
}

}  // namespace

void KnownMessages::begin(std::span<const PartitionId> partitions) {
  imported_.clear();
  store_.database().read([&](Connection& connection) {
    for (const PartitionId partition : partitions) {
      auto rows = connection.rows(sql::imported_messages{.partition = partition.number});
      while (rows.step()) {
        imported_[static_cast<std::uint64_t>(rows.first_broker())] = rows.last_sequence();
      }
    }
  });
}

std::vector<std::int64_t> KnownMessages::find(std::span<const FoundMessage> messages) const {
  std::vector<std::int64_t> found(messages.size());
  std::string sequences = "[";
  const auto imported_as = [&](const FoundMessage& message) {
    const auto at = imported_.find(message.broker_sequence);
    return at == imported_.end() ? 0 : at->second;
  };
  for (const FoundMessage& message : messages) {
    add(sequences, message.sequence.value());
    if (const std::int64_t imported = imported_as(message)) add(sequences, imported);
  }
  sequences += ']';
  store_.database().read([&](Connection& connection) {
    const auto ids = ids_of(connection, sequences);
    const auto has = [&](std::int64_t sequence, const FoundMessage& message) {
      const auto event = ids.find(sequence);
      return event != ids.end() && event->second == message.message_id.substr(0, event_id_size);
    };
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::int64_t imported = imported_as(messages[i]);
      if (has(messages[i].sequence.value(), messages[i])) {
        found[i] = messages[i].sequence.value();
      } else if (has(imported, messages[i])) {
        found[i] = imported;
      }
    }
  });
  return found;
}

}  // namespace stela::outbox
