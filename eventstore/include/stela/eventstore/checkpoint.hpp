// Moves the write-ahead log into the database file on request.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/sqlite.hpp>

#include <cstdint>

namespace stela::sqlite {

struct CheckpointResult {
  /// False if a reader still uses an older state, so that the log couldn't be emptied.
  bool complete = true;
  /// Pages of the log that aren't in the database file yet.
  std::int64_t pages_left = 0;
};

/// Moves everything committed into the database file, and empties the log. A store does this by
/// itself when the log has grown to `Options::checkpoint_pages`. Call it in a quiet hour, or to
/// free disk space. It waits for readers for up to `busy_timeout`, and appends wait meanwhile.
/// StoreBusy if it can't get the write lock, StoreFailed if the disk fails, UsageError inside a
/// transaction of this store. Threads: any number at once.
STELA_EVENTSTORE_EXPORT CheckpointResult checkpoint(Store& store);

}  // namespace stela::sqlite
