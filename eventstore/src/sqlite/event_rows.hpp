// Converts rows of the events table to stored events, and back.
#pragma once

#include "database/event_page.hpp"
#include "database/sqlite/connection.hpp"
#include "sqlite/kinds.hpp"
#include "sqlite/stream_heads.hpp"
#include "sqlite_sql/events.hpp"
#include "sqlite_sql/tags.hpp"
#include "succession.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/stream_id.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace stela::sqlite {

/// The sequence of the last event; 0 if there is none.
STELA_EVENTSTORE_EXPORT std::int64_t last_sequence(Connection& connection);
/// The highest sequence in the index of streams and versions, which it reads completely. Higher
/// than `last_sequence` if the table has lost events at its end.
std::int64_t last_indexed_sequence(Connection& connection);

/// The head of a stream, read inside a write transaction; zeros if it has no events. CorruptEvent
/// if its last event is damaged, or missing though the index lists it.
StreamHead find_head(Connection& connection, KindTable& kinds, const StreamId& stream);

/// Returns the number of a new stream.
std::int64_t insert_stream(Connection& connection, const StreamId& stream);

/// Writes an event unchanged, with its checksum.
void insert_row(Connection& connection, std::int64_t stream, const StoredEvent& event);

/// A reader's cache of stream names by number.
class STELA_EVENTSTORE_EXPORT StreamNames {
 public:
  /// About 18 MB. Looking up a name costs more than reading the event: a replay takes twice as long
  /// if its events alternate between more streams than the cache holds.
  static constexpr std::size_t max_size = 131'072;

  /// CorruptEvent if the database has no such stream, or its name is invalid.
  const StreamId& find(std::int64_t stream, Connection& connection);
  void add(std::int64_t stream, const StreamId& id) { names_.emplace(stream, id); }
  /// Bounds the memory. Call it only while no name is in use.
  void trim() noexcept {
    if (names_.size() > max_size) names_.clear();
  }

 private:
  std::unordered_map<std::int64_t, StreamId> names_;
};

/// Converts rows of the events table to events.
struct STELA_EVENTSTORE_EXPORT EventRows {
  Connection& connection;
  KindTable& kinds;
  StreamNames& names;
  /// Set if all rows are of this stream.
  const StreamId* stream = nullptr;
  Succession* succession = nullptr;
  /// Where to keep the tags of the last event; set if tags are read, too.
  std::string* tags = nullptr;
  /// The kinds of this page, to save locking: the kind table is shared with other threads.
  std::array<const EventKind*, 16> met_kinds = {};

  /// Appends `rows` to `page`; false if the page became full before they ended. A damaged or
  /// unreadable row ends the page before it; at the start of a page it is a CorruptEvent, which
  /// names it, or SQLite's error.
  bool fill(EventPage& page, sql::event_row& rows);

  /// The event of the current row, valid until its next step. CorruptEvent, naming it, if it
  /// differs from what was stored.
  StoredEvent read(const sql::event_row& row);
  /// The same, with the event's tags. `tags` must be set.
  StoredEvent read(const sql::tagged_event::Row& row);

 private:
  template <class Row>
  StoredEvent read_columns(const Row& row);
  const StreamId& stream_of(std::int64_t sequence, std::int64_t number);
  const EventKind& kind_of(std::int64_t sequence, std::int64_t number);
};

}  // namespace stela::sqlite
