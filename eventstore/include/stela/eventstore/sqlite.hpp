// Stores on SQLite: one file, opened by any number of threads and processes.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// `full`: an append returns when it is on the disk. `relaxed`: a power cut may take the last
/// appends, a crash of the process doesn't. A fact of the database.
enum class Durability : std::uint8_t { full, relaxed };

STELA_EVENTSTORE_EXPORT std::string_view to_string(Durability durability) noexcept;

struct Options {
  /// Facts of the database: set when it is made (full, JSON unless given). For a database that is
  /// there, leave them out, or say what it must be: UsageError if it is something else.
  std::optional<Durability> durability = {};
  std::optional<Codec> codec = {};

  /// Whether a database that isn't there is made.
  bool create = true;
  /// Only read: nothing is made, migrated or written, and no permission to write is needed, nor a
  /// folder that can be written to. Whatever would write ends in UsageError. StoreFailed if the
  /// system has no way to read what isn't in the file yet: a log without its `-shm`.
  bool read_only = false;
  /// Put Stela's tables into an SQLite file that holds tables of the application's. The file then
  /// has a write-ahead log and Stela's application id, which must stay: no store opens without it,
  /// and the error says how it is put back. `user_version` stays the application's.
  /// SchemaMismatch if it has another application id, stores text as UTF-16, or has a table, view
  /// or index by a name that Stela needs (`events`, `streams` …): it is left as it is.
  bool share_file = false;
  /// How long to wait for somebody else's lock before StoreBusy; 24 days at most. Threads of one
  /// store stand in line, and wait as long as it moves; while one thread's `transact` holds it, for
  /// a second at least.
  std::chrono::milliseconds busy_timeout{5000};
  /// A checkpoint runs when the write-ahead log has grown to this many pages of 4 KiB.
  int checkpoint_pages = 4000;
  /// Whether an event is published; empty: as the event says.
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
  const Clock* clock = &system_clock();
  /// Where the random part of event ids comes from; null: the operating system.
  Random* random = nullptr;
  /// The name of a registered SQLite VFS; empty: the platform's.
  std::string vfs = {};
};

/// Opens a database, makes it if it isn't there, and migrates an older one. SchemaMismatch for a
/// newer one, another application's, or a file that isn't a database, all left as they are;
/// StoreFailed if it can't be opened, or has more than one name (hard links); StoreBusy if it
/// has to be made or migrated, and somebody else writes to it for too long; UsageError for
/// ":memory:" and for a URI. Once it is open, a file that is deleted, moved or replaced at its path
/// is neither read nor written any more: StoreFailed.
STELA_EVENTSTORE_EXPORT Store open(const std::string& path, const Options& options = {});

/// A database that goes with the store: for tests, and for what needn't outlive the process.
STELA_EVENTSTORE_EXPORT Store open_in_memory(const Options& options = {});

/// Absolute, without links; empty if the database is in memory. UsageError if `store` isn't on
/// SQLite. Threads: any number at once.
STELA_EVENTSTORE_EXPORT const std::string& path(const Store& store);

/// What the database was made with. UsageError if `store` isn't on SQLite.
/// Threads: any number at once.
STELA_EVENTSTORE_EXPORT Durability durability(const Store& store);

}  // namespace stela::sqlite
