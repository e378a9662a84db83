// The source of a cursor's pages: the part of reading that differs between engines.
#pragma once

#include "database/connection.hpp"
#include "database/event_page.hpp"
#include "succession.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stela::ledger {

using database::Connection;

/// A range of sequences, including both ends.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Every event in it belongs to one of the wanted streams.
  bool is_of_streams = false;
};

/// Reads for one cursor, with one kind of query. Each function adds at most `wanted` events to a
/// page, in the query's direction. It stops before an event that doesn't fit into the page, and
/// before a damaged one; a damaged event at the start of the page is a CorruptEvent.
/// Threads: one at a time.
class Pages {
 public:
  virtual ~Pages() = default;

  /// Runs `work`, which returns the highest sequence in its answer, until that sequence can't be
  /// lost. It may run `work` again, from the same position.
  virtual void read(FunctionRef<std::int64_t(Connection&)> work) = 0;
  /// Bounds the memory. Call it only while no event of a page is in use.
  virtual void trim() noexcept = 0;
  /// How many events like the previous ones fill a page.
  virtual std::int64_t rows_of_page() const noexcept { return most_rows; }
  /// Each page costs a round trip, so a small one costs more than the memory it saves.
  virtual bool is_far() const noexcept = 0;
  static constexpr std::int64_t most_rows = 1024;

  /// 0 if there is none.
  virtual std::int64_t last_sequence(Connection& connection) = 0;
  /// True if no more events of the stream are within the query's bounds.
  virtual bool add_stream(Connection& connection, const StreamId& stream, const StreamQuery& query,
                          std::int64_t wanted, Succession& succession, EventPage& page) = 0;
  /// The next range within `left` that may have events which match the query's filter; nothing if
  /// there is none. Call it with the rest after the previous range, so that ranges are consecutive.
  /// No range is longer than one read should take.
  virtual std::optional<Range> next_range(Connection& connection, const AllQuery& query,
                                          const Range& left) = 0;
  /// Adds events of the range that match the query's filter. True if there are no more.
  virtual bool add_filtered(Connection& connection, const AllQuery& query, const Range& range,
                            std::int64_t wanted, EventPage& page) = 0;
  /// Adds all events of the range. True if there are no more.
  virtual bool add_range(Connection& connection, const AllQuery& query, const Range& range,
                         std::int64_t wanted, Succession& succession, EventPage& page) = 0;
  /// Adds matching events within `left`. Returns the last examined sequence.
  virtual std::int64_t add_matching(Connection& connection, const Query& query, Direction direction,
                                    const Range& left, std::int64_t wanted, EventPage& page) = 0;
  /// Adds events with these ascending sequences. Returns how many were examined.
  virtual std::size_t add_at(Connection& connection, std::span<const std::int64_t> sequences,
                             EventPage& page) = 0;
};

}  // namespace stela::ledger
