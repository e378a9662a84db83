// Rows of the events table as stored events, and the other way round.
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

/// Of the last event; 0 if there is none.
STELA_EVENTSTORE_EXPORT std::int64_t last_sequence(Connection& connection);
/// The largest in the index of streams and versions, all of which it reads: larger than
/// `last_sequence` if the table has lost events at its end.
std::int64_t last_indexed_sequence(Connection& connection);

/// Where a stream stands, asked of the database inside a write transaction; zeros if it has no
/// events. CorruptEvent if its last event is damaged, or missing though the index knows of it.
StreamHead find_head(Connection& connection, KindTable& kinds, const StreamId& stream);

/// The number of a stream that is new.
std::int64_t insert_stream(Connection& connection, const StreamId& stream);

/// Writes an event as it is, with its checksum.
void insert_row(Connection& connection, std::int64_t stream, const StoredEvent& event);

/// Names of streams by their number, as one reader has met them.
class STELA_EVENTSTORE_EXPORT StreamNames {
 public:
  /// Some 18 MB. A name that has to be asked for costs more than reading the event: it doubles the
  /// time of a replay whose events belong to more streams in turns than are remembered.
  static constexpr std::size_t max_size = 131'072;

  /// CorruptEvent if the database has no such stream, or a name that isn't one.
  const StreamId& find(std::int64_t stream, Connection& connection);
  void add(std::int64_t stream, const StreamId& id) { names_.emplace(stream, id); }
  /// Bounds the memory; only while nobody points to a name.
  void trim() noexcept {
    if (names_.size() > max_size) names_.clear();
  }

 private:
  std::unordered_map<std::int64_t, StreamId> names_;
};

/// Turns rows of the events table into events.
struct STELA_EVENTSTORE_EXPORT EventRows {
  Connection& connection;
  KindTable& kinds;
  StreamNames& names;
  /// Set if all rows are of this stream.
  const StreamId* stream = nullptr;
  Succession* succession = nullptr;
  /// Set if the tags of each event are to be read, too: where to keep those of the last one.
  std::string* tags = nullptr;
  /// The kind table is shared with other threads; what this page met of it needn't be locked again.
  std::array<const EventKind*, 16> met_kinds = {};

  /// Appends `rows` to `page`; false if the page was full before they ended. A row
  /// that is damaged, or can't be read, ends the page before it; as the first of a page it is a
  /// CorruptEvent that names it, or what SQLite said.
  bool fill(EventPage& page, sql::event_row& rows);

  /// The event of the row that `row` stands on, valid until its next step. CorruptEvent that names
  /// it if it isn't what was stored.
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
