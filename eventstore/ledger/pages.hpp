// Where a cursor's pages come from: what of reading differs between engines.
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

/// Sequences; both ends belong to it.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Every event in it is of one of the streams that are wanted.
  bool is_of_streams = false;
};

/// Reads for one cursor, which asks one kind of question. What adds to a page adds at most `wanted`
/// events, in the question's direction. It stops before an event that the page has no room for, and
/// before a damaged one, which is a CorruptEvent if it is the first of the page.
/// Threads: one at a time.
class Pages {
 public:
  virtual ~Pages() = default;

  /// Runs `work`, which says up to which sequence its answer reaches, until that can't be lost:
  /// maybe again, from the same place.
  virtual void read(FunctionRef<std::int64_t(Connection&)> work) = 0;
  /// Bounds the memory; only while nobody uses an event of a page.
  virtual void trim() noexcept = 0;
  /// So many events like those before fill a page.
  virtual std::int64_t rows_of_page() const noexcept { return most_rows; }
  /// A page costs a round trip: one that is too small costs more than its memory.
  virtual bool is_far() const noexcept = 0;
  static constexpr std::int64_t most_rows = 1024;

  /// 0 if there is none.
  virtual std::int64_t last_sequence(Connection& connection) = 0;
  /// True if no more events of the stream are within the query's bounds.
  virtual bool add_stream(Connection& connection, const StreamId& stream, const StreamQuery& query,
                          std::int64_t wanted, Succession& succession, EventPage& page) = 0;
  /// The next range within `left` that may have events which the query's filter lets through;
  /// nothing if there is none. To be asked with what the one before left over, so that ranges
  /// follow each other. None is longer than one read should last.
  virtual std::optional<Range> next_range(Connection& connection, const AllQuery& query,
                                          const Range& left) = 0;
  /// Events of the range that the query's filter lets through. True if there are no more.
  virtual bool add_filtered(Connection& connection, const AllQuery& query, const Range& range,
                            std::int64_t wanted, EventPage& page) = 0;
  /// All events of the range. True if there are no more.
  virtual bool add_range(Connection& connection, const AllQuery& query, const Range& range,
                         std::int64_t wanted, Succession& succession, EventPage& page) = 0;
  /// Events within `left` that match. The last sequence that was looked at.
  virtual std::int64_t add_matching(Connection& connection, const Query& query, Direction direction,
                                    const Range& left, std::int64_t wanted, EventPage& page) = 0;
  /// Events with these sequences, which ascend. How many of them were looked at.
  virtual std::size_t add_at(Connection& connection, std::span<const std::int64_t> sequences,
                             EventPage& page) = 0;
};

}  // namespace stela::ledger
