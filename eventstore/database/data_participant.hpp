// Participants that add data to appends: their rows follow from the events, not from the database.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::database {

/// A row that a participant adds to an append, completed by the engine.
struct DataRow {
  /// The participant's key for the event.
  std::uint32_t key = 0;
  std::int64_t sequence = 0;
  /// The number of the event's stream.
  std::int64_t stream = 0;
};

/// A participant in two steps: the first knows only the event, so that an engine can send an append
/// and its rows together; the second knows the sequence. Apart from `key_of` it calls no user code,
/// so its appends share commits. Threads: the one that leads the store's transaction.
class STELA_EVENTSTORE_EXPORT DataParticipant : public Participant {
 public:
  /// Nothing if the event adds no row. Doesn't query the database.
  virtual std::optional<std::uint32_t> key_of(const StreamId& stream, const NewEvent& event,
                                              std::string_view metadata) = 0;
  /// Called in sequence order. An exception rolls the append back. On PostgreSQL the function
  /// add_data_rows of the module's migrations does this instead.
  virtual void insert(Connection& connection, const DataRow& row) = 0;
};

}  // namespace stela::database
