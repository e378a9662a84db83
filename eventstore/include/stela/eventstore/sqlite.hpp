// Stores on SQLite: one file, which any number of threads and processes may open.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// `full`: an append returns after it is on disk. `relaxed`: a power cut may lose the last appends;
/// a crash of the process doesn't. A fact of the database.
enum class Durability : std::uint8_t { full, relaxed };

STELA_EVENTSTORE_EXPORT std::string_view to_string(Durability durability) noexcept;

struct Options {
  /// Facts of the database, set when it is created (the defaults are `full` and JSON). For an
  /// existing database, leave them out or state the present values: UsageError if they differ.
  std::optional<Durability> durability = {};
  std::optional<Codec> codec = {};

  /// Creates the database if it is missing.
  bool create = true;
  /// Migrates it if it is older. False: SchemaMismatch, for programs that leave migrating to an
  /// operator.
  bool migrate = true;
  /// Only reads. Nothing is created, migrated or written, and neither the file nor its folder needs
  /// to be writable. Any write is a UsageError. StoreFailed if the latest changes can't be read
  /// because they are in a write-ahead log without its `-shm` file.
  bool read_only = false;
  /// Puts Stela's tables into an SQLite file that holds the application's tables. The file then
  /// gets a write-ahead log and Stela's application id. The id must stay: no store opens the file
  /// without it, and the error says how to restore it. `user_version` remains the application's.
  /// SchemaMismatch if the file has another application id, stores text as UTF-16, or has a table,
  /// view or index with a name that Stela needs (`events`, `streams` …). The file is unchanged
  /// then.
  bool share_file = false;
  /// How long to wait for a lock of another process or thread before StoreBusy. Capped at 24 days,
  /// the longest that SQLite can wait. Threads of one store wait in a queue, as long as the queue
  /// moves. While a `transact` of one thread holds the lock, the others wait for at least a second.
  std::chrono::milliseconds busy_timeout{5000};
  /// A checkpoint runs when the write-ahead log has grown to this many pages of 4 KiB.
  int checkpoint_pages = 4000;
  /// Decides whether an event is published. Empty: as its event type says.
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
  const Clock* clock = &system_clock();
  /// The source of the random part of event ids. Null: the operating system.
  Random* random = nullptr;
  /// The keys of personal fields. They must outlive the store. Null: those fields stay sealed, and
  /// none is written.
  Keyring* keys = nullptr;
  /// The name of a registered SQLite VFS. Empty: the platform's.
  std::string vfs = {};
};

/// Opens a database. Creates it if it is missing, and migrates it if it is older. SchemaMismatch if
/// it is newer, belongs to another application, or isn't a database; the file is unchanged then.
/// StoreFailed if it can't be opened, or has more than one name (hard links). StoreBusy if it must
/// be created or migrated, and another process holds the write lock for too long. UsageError for
/// ":memory:" and for a URI. Once the open file is deleted, moved or replaced, every read and write
/// fails with StoreFailed.
STELA_EVENTSTORE_EXPORT Store open(const std::string& path, const Options& options = {});

/// A database in memory that ends with the store: for tests and temporary data.
STELA_EVENTSTORE_EXPORT Store open_in_memory(const Options& options = {});

/// The absolute path, without symbolic links. Empty if the database is in memory. UsageError if
/// `store` isn't on SQLite. Threads: any number at once.
STELA_EVENTSTORE_EXPORT const std::string& path(const Store& store);

/// The durability that the database was created with. UsageError if `store` isn't on SQLite.
/// Threads: any number at once.
STELA_EVENTSTORE_EXPORT Durability durability(const Store& store);

}  // namespace stela::sqlite
