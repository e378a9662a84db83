// Moving the write-ahead log into the database when the caller wants it.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/sqlite.hpp>

#include <cstdint>

namespace stela::sqlite {

struct CheckpointResult {
  /// False if somebody still reads an older state: then the log couldn't be emptied.
  bool complete = true;
  /// Pages of the log that aren't in the database file yet.
  std::int64_t pages_left = 0;
};

/// Moves all that is committed into the database file, and empties the log. A store does so by
/// itself whenever the log has grown to `Options::checkpoint_pages`; by hand it is for a quiet
/// hour, and to give the disk its space back. Waits for readers for up to `busy_timeout`, and
/// appends wait meanwhile. StoreBusy if the write lock can't be had, StoreFailed if the disk fails,
/// UsageError from within a transaction of this store. Threads: any number at once.
STELA_EVENTSTORE_EXPORT CheckpointResult checkpoint(Store& store);

}  // namespace stela::sqlite
