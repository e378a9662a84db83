// A copy of a database, made while it is in use.
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
  /// In pages. Called between steps; what it throws ends the backup, and reaches the caller.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct BackupResult {
  /// The last event that the copy holds.
  GlobalSequence last;
  std::int64_t bytes = 0;
  /// False if it was stopped: then there is no copy.
  bool finished = true;
};

/// Copies the database, as it is when this begins, to a new file that opens like any other. Other
/// threads and processes go on appending; as long as it lasts the write-ahead log only grows.
/// The copy is written beside `path` under another name, made durable, and renamed: `path` exists
/// when it is whole, or never. UsageError if something is there already; StoreFailed if the folder
/// isn't, or if the database was replaced since it was opened; StoreFull, StoreBusy, StoreFailed as
/// their names say.
/// Threads: any number at once, beside writers.
STELA_EVENTSTORE_EXPORT BackupResult backup(Store& store, const std::string& path,
                                            const BackupOptions& options = {});

}  // namespace stela::sqlite
