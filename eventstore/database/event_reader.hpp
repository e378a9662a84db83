// Events by their sequence, read through a connection that is open.
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

/// A row of the events. Valid until the next one is read.
struct EventRow {
  std::int64_t sequence;
  /// The number of its stream.
  std::int64_t stream;
  /// Null if it isn't what was stored; then `problem` says why, and `fault` in words that don't
  /// name the event.
  const StoredEvent* event;
  std::string problem;
  std::string fault;
};

/// Rows by their sequences: so many of them at most.
struct RowRange {
  std::int64_t first;
  std::int64_t last;
  std::int64_t most;
  /// Whether the events come with their tags.
  bool with_tags = false;
};

/// Remembers the names of streams, and the kinds of events, that it has met.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT EventReader {
 public:
  virtual ~EventReader() = default;

  /// How many sequences may lie between two that are asked for together.
  virtual std::int64_t widest_gap() const noexcept = 0;
  /// Hands `use` the rows of these sequences, which ascend, until it returns false. Those that
  /// don't exist are left out.
  virtual void read(Connection& connection, std::span<const std::int64_t> sequences,
                    FunctionRef<bool(const EventRow&)> use) = 0;
  /// The same of the rows of a range, or of the first of them if they are large.
  virtual void read_range(Connection& connection, const RowRange& range,
                          FunctionRef<bool(const EventRow&)> use) = 0;
  /// Appends the events from `first` on to `page` until that is full; false if they ended before.
  /// CorruptEvent if the first of them is damaged.
  virtual bool fill(Connection& connection, std::int64_t first, EventPage& page) = 0;
  /// Bounds the memory; only while nobody uses an event or a name that came from this reader.
  virtual void trim() noexcept = 0;
  /// CorruptEvent if the database has no stream of that number, or a name that isn't one.
  virtual const StreamId& stream(Connection& connection, std::int64_t number) = 0;
};

}  // namespace stela::database
