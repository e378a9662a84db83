// Rows of the events table as stored events.
#pragma once

#include "event_page.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/kinds.hpp"

#include <stela/framework/stream_id.hpp>

#include <cstdint>
#include <unordered_map>

namespace stela::sqlite {

/// Names of streams by their number, as one reader has met them.
class StreamNames {
 public:
  static constexpr std::size_t max_size = 16'384;

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

/// Turns rows of the queries read_*.sql into events.
struct EventRows {
  Connection& connection;
  KindTable& kinds;
  StreamNames& names;
  /// Reading inside a write transaction, which may have added kinds of its own.
  bool in_transaction = false;
  /// Set if all rows are of this stream.
  const StreamId* stream = nullptr;

  /// Appends the rows of `query` to `page`; false if the page was full before they ended. A row
  /// that is damaged ends the page before it; as the first of a page it is a CorruptEvent that
  /// names it.
  bool fill(EventPage& page, Query& query);

 private:
  StoredEvent read(Query& row);
};

}  // namespace stela::sqlite
