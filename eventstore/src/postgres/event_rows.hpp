// Rows of events as stored events.
#pragma once

#include "database/event_page.hpp"
#include "database/postgres/connection.hpp"
#include "database/postgres/parameters.hpp"
#include "postgres/kinds.hpp"
#include "succession.hpp"

#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::postgres {

/// Less than a page holds, which has correlations and metadata besides.
inline constexpr std::int64_t page_bytes = std::int64_t{192} * 1024;

/// The events in one page of an answer, chosen by `where` and in the order of `order`. They end
/// before their bytes are more than the page has room for, but for those of the first. `limit` is a
/// parameter of the statement.
std::string page_sql(std::string_view where, std::string_view order, std::string_view limit);

/// Selects the columns of events "p" whose kinds are "k", but for payloads that are large. What
/// follows is the name of the stream.
std::string quick_columns();

/// The same for cursors, which know the names of streams. Few pages have large payloads, and to
/// count bytes takes the server as long as all the rest.
struct PageSql {
  PageSql(std::string_view where, std::string_view order, std::string_view limit);

  /// Leaves out the payloads that are large.
  std::string quick;
  /// As `page_sql`.
  std::string bounded;
};

/// Names of streams, as one reader has met them.
class StreamNames {
 public:
  /// Some 18 MB.
  static constexpr std::size_t max_size = 131'072;

  const StreamId& find(std::string_view name);
  /// Bounds the memory; only while nobody points to a name.
  void trim() noexcept {
    if (names_.size() > max_size) names_.clear();
  }

 private:
  std::map<std::string, StreamId, std::less<>> names_;
};

/// Names of streams by their numbers, as one cursor has met them: a number that was given out in a
/// transaction that ended in a rollback, or that a server lost, belongs to another stream later.
class StreamNumbers {
 public:
  /// Finds those of the rows that it doesn't know. In another run of the server only while nobody
  /// points to a name.
  void learn(Connection& connection, const Result& rows);
  /// UsageError if its name is invalid; null if it has none.
  const StreamId* find(std::int64_t number) const;
  /// Bounds the memory; only while nobody points to a name.
  void trim() noexcept {
    if (names_.size() > StreamNames::max_size) names_.clear();
  }

 private:
  Uuid run_ = {};
  std::unordered_map<std::int64_t, StreamId> names_;
  std::unordered_map<std::int64_t, std::string> invalid_;
};

/// Turns the rows of `page_sql` into events.
struct EventRows {
  KindTable& kinds;
  StreamNames& names;
  /// Set if all rows are of this stream.
  const StreamId* stream = nullptr;
  /// Set if the rows have the numbers of their streams alone.
  const StreamNumbers* numbers = nullptr;
  Succession* succession = nullptr;
  /// Set if the events are read with their tags: the stored forms, by sequence.
  const std::map<std::int64_t, std::string>* tags = nullptr;
  std::array<const EventKind*, 16> met_kinds = {};

  /// Appends `rows` to `page`; false if more rows may stand behind them, of the `wanted` that were
  /// asked for. A damaged row ends the page before it; as the first of a page it is a CorruptEvent
  /// that names it. A payload that was left out ends it, too.
  bool fill(EventPage& page, const Result& rows, std::int64_t wanted);
  /// CorruptEvent if it isn't what was stored.
  StoredEvent read(const Result& rows, int row);
  /// Whether a quick statement has left out the first payload.
  static bool begins_with_large(const Result& rows) noexcept;
  static bool is_left_out(const Result& rows, int row) noexcept;
  static bool has_large(const Result& rows) noexcept;
  /// Whether `page_sql` may have left out rows because of their bytes.
  static bool ends_early(const Result& rows) noexcept;
  /// Of the payloads.
  static std::int64_t bytes_of(const Result& rows) noexcept;
  static std::int64_t sequence_of(const Result& rows, int row) noexcept;
  /// Those of all rows.
  static Array sequences_of(const Result& rows);
  /// The number of the event's stream.
  static std::int64_t stream_number_of(const Result& rows, int row) noexcept;

 private:
  const EventKind& kind_of(const Result& rows, int row);
  const StreamId& stream_of(const Result& rows, int row);
};

}  // namespace stela::postgres
