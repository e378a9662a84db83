#include "database/checksum.hpp"
#include "database/partial_file.hpp"
#include "database/sqlite/failure.hpp"
#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite_sql/participants.hpp"

#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

namespace stela::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr int pages_a_step = 256;

[[noreturn]] void refuse_target(const std::string& path) {
  throw UsageError{"'" + path +
                   "' is there already, and a backup overwrites nothing; name another file"};
}

/// Refuses existing files that belong to a database, or would be taken for part of one.
void check_target(const std::string& path) {
  check_name(path);
  std::error_code ignored;
  const fs::path parent = fs::path{path}.parent_path();
  if (!parent.empty() && !fs::is_directory(parent, ignored)) {
    throw StoreFailed{"'" + path + "' can't be made: there is no folder '" + parent.string() +
                      "'; make it first"};
  }
  for (const char* const suffix : {"", "-wal", "-journal", "-shm"}) {
    if (fs::exists(fs::symlink_status(path + suffix, ignored))) refuse_target(path + suffix);
  }
}

/// Removes the auxiliary files of the copy.
class LogOfCopy {
 public:
  explicit LogOfCopy(std::string path) : path_{std::move(path)} {}
  ~LogOfCopy() {
    for (const char* const suffix : {"-wal", "-shm"}) ::unlink((path_ + suffix).c_str());
  }
  LogOfCopy(const LogOfCopy&) = delete;
  LogOfCopy& operator=(const LogOfCopy&) = delete;

 private:
  const std::string path_;
};

/// A read transaction, so that the copy is of one moment.
class ReadSnapshot {
 public:
  explicit ReadSnapshot(Connection& connection) : connection_{connection} {
    if (connection_.in_transaction()) {
      throw UsageError{"a database in memory can't be backed up from inside its own transaction"};
    }
    connection_.execute("BEGIN");
  }
  ~ReadSnapshot() { connection_.roll_back(); }
  ReadSnapshot(const ReadSnapshot&) = delete;
  ReadSnapshot& operator=(const ReadSnapshot&) = delete;

  GlobalSequence last_sequence() { return GlobalSequence{sqlite::last_sequence(connection_)}; }

 private:
  Connection& connection_;
};

struct FinishBackup {
  void operator()(sqlite3_backup* copying) const noexcept { sqlite3_backup_finish(copying); }
};

/// False if it was stopped.
bool copy_pages(Connection& from, Connection& to, const std::string& path,
                const BackupOptions& options) {
  const std::string doing = "backing up to '" + path + "'";
  std::unique_ptr<sqlite3_backup, FinishBackup> copying{
      sqlite3_backup_init(to.handle(), "main", from.handle(), "main")};
  if (!copying) fail(to.handle(), sqlite3_errcode(to.handle()), doing);
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    if (options.stop.stop_requested()) return false;
    code = sqlite3_backup_step(copying.get(), pages_a_step);
    const int total = sqlite3_backup_pagecount(copying.get());
    if (options.progress && (code == SQLITE_OK || code == SQLITE_DONE)) {
      options.progress({"backup", total - sqlite3_backup_remaining(copying.get()), total});
    }
  }
  const int finished = sqlite3_backup_finish(copying.release());
  if (code != SQLITE_DONE) fail(to.handle(), code, doing);
  if (finished != SQLITE_OK) fail(to.handle(), finished, doing);
  return true;
}

/// Marks the copy as a copy: work that is due in it may have been done since, so check first.
void note_copy(Connection& to, Timestamp now) {
  constexpr std::string_view name = "copied_at";
  const std::string value = std::to_string(now.time_since_epoch().count());
  to.run(sql::replace_fact{
      .name = name, .value = value, .checksum = database::checksum_of({}, {name, value})});
  // From now on the copy has a log, like the original; the file must contain everything.
  to.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

void copy_database(Connection& from, const std::string& vfs, const std::string& path,
                   const BackupOptions& options, Timestamp now, BackupResult& result) {
  ReadSnapshot snapshot{from};
  result.last = snapshot.last_sequence();
  Connection to{path, {.flags = SQLITE_OPEN_READWRITE, .vfs = vfs}};
  // A failure removes the file, so no journal is needed; but the file is synced before it gets its
  // name.
  to.execute("PRAGMA journal_mode = OFF");
  to.execute("PRAGMA synchronous = FULL");
  result.finished = copy_pages(from, to, path, options);
  if (result.finished) note_copy(to, now);
  from.check_immutable();
}

}  // namespace

BackupResult backup(Store& store, const std::string& path, const BackupOptions& options) {
  check_target(path);
  BackupResult result;
  const std::string& original = sqlite::path(store);
  database::PartialFile partial{path, original.empty() ? 0644U : 0600U};
  const LogOfCopy log{partial.path()};
  const std::string& vfs = core_of(store).options().vfs;
  const Timestamp now = store.database().now();
  if (original.empty()) {
    core_of(store).reading().read([&](Connection& connection) {
      copy_database(connection, vfs, partial.path(), options, now, result);
    });
  } else {
    const auto connection = core_of(store).connect();
    copy_database(*connection, vfs, partial.path(), options, now, result);
    core_of(store).check_place();
  }
  if (!result.finished) return result;
  result.bytes = static_cast<std::int64_t>(fs::file_size(partial.path()));
  if (!original.empty()) partial.take_rights_of(original);
  if (!partial.publish()) refuse_target(path);
  return result;
}

}  // namespace stela::sqlite
