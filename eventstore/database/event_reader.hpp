// Reads events by sequence, on an open connection.
#pragma once

#include "database/connection.hpp"
#include "database/event_page.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/stored_event.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace stela::database {

/// A row of the events table. Valid until the next one is read.
struct EventRow {
  std::int64_t sequence;
  /// The number of its stream.
  std::int64_t stream;
  /// Null if the row differs from what was stored; then `problem` says why, and `fault` says it
  /// without naming the event.
  const StoredEvent* event;
  std::string problem;
  std::string fault;
};

/// A range of rows by sequence, and the most to read.
struct RowRange {
  std::int64_t first;
  std::int64_t last;
  std::int64_t most;
  /// Whether to read the events' tags.
  bool with_tags = false;
};

/// Caches the stream names and event kinds that it has read.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT EventReader {
 public:
  virtual ~EventReader() = default;

  /// The widest gap between two sequences that are worth reading together.
  virtual std::int64_t widest_gap() const noexcept = 0;
  /// Passes the rows of these ascending sequences to `use`, until it returns false. Skips missing
  /// sequences.
  virtual void read(Connection& connection, std::span<const std::int64_t> sequences,
                    FunctionRef<bool(const EventRow&)> use) = 0;
  /// Passes the rows of a range in the same way; only the first of them if they are large.
  virtual void read_range(Connection& connection, const RowRange& range,
                          FunctionRef<bool(const EventRow&)> use) = 0;
  /// Appends events from `first` on to `page` until it is full; false if the events end before
  /// that. CorruptEvent if the first of them is damaged.
  virtual bool fill(Connection& connection, std::int64_t first, EventPage& page) = 0;
  /// Bounds the memory. Call it only while no event or name from this reader is in use.
  virtual void trim() noexcept = 0;
  /// CorruptEvent if the database has no stream with that number, or its name is invalid.
  virtual const StreamId& stream(Connection& connection, std::int64_t number) = 0;
};

}  // namespace stela::database
