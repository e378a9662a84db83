// Care of an SQLite file while it is in use: backup and checkpoint.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/sqlite.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace stela::sqlite {

struct BackupOptions {
  /// Counts pages. Called between steps. An exception from it ends the backup and reaches the
  /// caller.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct BackupResult {
  /// The last event in the copy.
  GlobalSequence last;
  std::int64_t bytes = 0;
  /// False if the backup was stopped. There is no copy then.
  bool finished = true;
};

/// Copies the database, as it is when the backup begins, to a new file. The copy opens like any
/// other database. Other threads and processes continue to append. The write-ahead log can't shrink
/// while the backup runs. The copy is written beside `path` under another name, made durable, and
/// then renamed. So `path` holds either a complete copy or nothing. Whoever may read the database's
/// file may read the copy, and nobody else; if its group can't be set, only this user. UsageError
/// if `path` exists already. StoreFailed if its folder is missing, or if the database was replaced
/// since it was opened. Also StoreFull, StoreBusy and StoreFailed, as their names say.
/// Threads: any number at once, alongside writers.
STELA_EVENTSTORE_EXPORT BackupResult backup(Store& store, const std::string& path,
                                            const BackupOptions& options = {});

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
