// Converts rows to stored events.
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

/// Less than a page holds, because correlations and metadata come on top.
inline constexpr std::int64_t page_bytes = std::int64_t{192} * 1024;

/// Selects one page of events, chosen by `where` and ordered by `order`. The page ends before its
/// bytes exceed the page's room, but has at least the first event. `limit` is a parameter of the
/// statement.
std::string page_sql(std::string_view where, std::string_view order, std::string_view limit);

/// Selects the columns of events "p" with kinds "k", without large payloads. The stream's name may
/// follow.
std::string quick_columns();

/// The same for cursors, which know the streams' names. Large payloads are rare, and counting bytes
/// costs the server as much as the rest of the query.
struct PageSql {
  PageSql(std::string_view where, std::string_view order, std::string_view limit);

  /// Omits large payloads.
  std::string quick;
  /// As `page_sql`.
  std::string bounded;
};

/// A reader's cache of stream names.
class StreamNames {
 public:
  /// About 18 MB.
  static constexpr std::size_t max_size = 131'072;

  const StreamId& find(std::string_view name);
  /// Bounds the memory. Call it only while no name is in use.
  void trim() noexcept {
    if (names_.size() > max_size) names_.clear();
  }

 private:
  std::map<std::string, StreamId, std::less<>> names_;
};

/// A cursor's cache of stream names by number. It doesn't outlive the cursor, because a number from
/// a rolled-back transaction, or one that the server lost, later belongs to another stream.
class StreamNumbers {
 public:
  /// Looks up the unknown streams of these rows. In another run of the server, call it only while
  /// no name is in use.
  void learn(Connection& connection, const Result& rows);
  /// UsageError if its name is invalid; null if it has none.
  const StreamId* find(std::int64_t number) const;
  /// Bounds the memory. Call it only while no name is in use.
  void trim() noexcept {
    if (names_.size() > StreamNames::max_size) names_.clear();
  }

 private:
  Uuid run_ = {};
  std::unordered_map<std::int64_t, StreamId> names_;
  std::unordered_map<std::int64_t, std::string> invalid_;
};

/// Converts the rows of `page_sql` to events.
struct EventRows {
  KindTable& kinds;
  StreamNames& names;
  /// Set if all rows are of this stream.
  const StreamId* stream = nullptr;
  /// Set if the rows have only the numbers of their streams.
  const StreamNumbers* numbers = nullptr;
  Succession* succession = nullptr;
  /// The stored tags by sequence; set if events are read with their tags.
  const std::map<std::int64_t, std::string>* tags = nullptr;
  std::array<const EventKind*, 16> met_kinds = {};

  /// Appends `rows` to `page`; false if more of the `wanted` rows may follow. A damaged row ends
  /// the page before it; at the start of a page it is a CorruptEvent, which names it. An omitted
  /// payload also ends the page.
  bool fill(EventPage& page, const Result& rows, std::int64_t wanted);
  /// CorruptEvent if the row differs from what was stored.
  StoredEvent read(const Result& rows, int row);
  /// Whether a quick statement omitted the first payload.
  static bool begins_with_large(const Result& rows) noexcept;
  static bool is_left_out(const Result& rows, int row) noexcept;
  static bool has_large(const Result& rows) noexcept;
  /// Whether `page_sql` may have omitted rows because of their size.
  static bool ends_early(const Result& rows) noexcept;
  /// The total size of the payloads.
  static std::int64_t bytes_of(const Result& rows) noexcept;
  static std::int64_t sequence_of(const Result& rows, int row) noexcept;
  /// The sequences of all rows.
  static Array sequences_of(const Result& rows);
  /// The number of the event's stream.
  static std::int64_t stream_number_of(const Result& rows, int row) noexcept;

 private:
  const EventKind& kind_of(const Result& rows, int row);
  const StreamId& stream_of(const Result& rows, int row);
};

}  // namespace stela::postgres
