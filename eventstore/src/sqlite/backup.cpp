#include "database/checksum.hpp"
#include "database/sqlite/failure.hpp"
#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite_sql/participants.hpp"

#include <stela/eventstore/backup.hpp>
#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

namespace stela::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr int pages_a_step = 256;
constexpr mode_t default_mode = 0644;

[[noreturn]] void fail_file(const std::string& path, const char* doing) {
  const int error = errno;
  const std::string text = std::string{doing} + " '" + path + "' failed: " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) throw StoreFull{text + "; free some space"};
  throw StoreFailed{text};
}

[[noreturn]] void refuse_target(const std::string& path) {
  throw UsageError{"'" + path +
                   "' is there already, and a backup overwrites nothing; name another file"};
}

/// The files that make up a database, or would be taken for a part of one.
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

/// A file that goes again unless it is published.
class PartialFile {
 public:
  PartialFile(std::string target, std::optional<mode_t> mode)
      : target_{std::move(target)}, path_{target_ + ".partial-" + make_uuid().to_string()} {
    const int file =
        ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode.value_or(default_mode));
    if (file < 0) fail_file(path_, "making");
    // The mode of the original, whatever the umask: nobody may read a copy who can't read that.
    const bool has_mode = !mode || ::fchmod(file, *mode) == 0;
    ::close(file);
    if (!has_mode) {
      ::unlink(path_.c_str());
      fail_file(path_, "setting the mode of");
    }
  }
  ~PartialFile() {
    if (path_.empty()) return;
    drop_log();
    ::unlink(path_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const noexcept { return path_; }

  /// Gives the file its name, unless somebody took that meanwhile.
  void publish() {
    drop_log();
    if (!rename_to_target()) {
      if (errno == EEXIST) refuse_target(target_);
      fail_file(target_, "naming");
    }
    // Until the name is durable it may yet have to go.
    path_ = target_;
    sync_folder();
    path_.clear();
  }

 private:
  /// What it took to write to the copy.
  void drop_log() const {
    for (const char* const suffix : {"-wal", "-shm"}) ::unlink((path_ + suffix).c_str());
  }

  bool rename_to_target() {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    // Some file systems can't promise that; then what was seen a moment ago must do.
    if (errno != EINVAL && errno != ENOSYS) return false;
    check_target(target_);
    return ::rename(path_.c_str(), target_.c_str()) == 0;
  }

  void sync_folder() {
    const fs::path parent = fs::path{target_}.parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) fail_file(folder, "opening");
    const bool is_synced = ::fsync(file) == 0;
    ::close(file);
    if (!is_synced) fail_file(folder, "syncing");
  }

  std::string target_;
  std::string path_;
};

std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode & 0777;
}

/// A read transaction: what is copied is the database at one moment.
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

/// Says in the copy that it is one: whoever acts on what is due must ask what happened since.
void note_copy(Connection& to, Timestamp now) {
  constexpr std::string_view name = "copied_at";
  const std::string value = std::to_string(now.time_since_epoch().count());
  to.run(sql::replace_fact{
      .name = name, .value = value, .checksum = database::checksum_of({}, {name, value})});
  // The copy has a log from now on, as the original has; the file must have it all.
  to.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

void copy_database(Connection& from, const std::string& vfs, PartialFile& partial,
                   const BackupOptions& options, Timestamp now, BackupResult& result) {
  ReadSnapshot snapshot{from};
  result.last = snapshot.last_sequence();
  Connection to{partial.path(), {.flags = SQLITE_OPEN_READWRITE, .vfs = vfs}};
  // What goes wrong takes the file with it, so nothing needs a journal; but the file is synced
  // before it gets its name.
  to.execute("PRAGMA journal_mode = OFF");
  to.execute("PRAGMA synchronous = FULL");
  result.finished = copy_pages(from, to, partial.path(), options);
  if (result.finished) note_copy(to, now);
  from.check_immutable();
}

}  // namespace

BackupResult backup(Store& store, const std::string& path, const BackupOptions& options) {
  check_target(path);
  BackupResult result;
  PartialFile partial{path, mode_of(sqlite::path(store))};
  const std::string& vfs = core_of(store).options().vfs;
  const Timestamp now = store.database().now();
  if (sqlite::path(store).empty()) {
    core_of(store).reading().read([&](Connection& connection) {
      copy_database(connection, vfs, partial, options, now, result);
    });
  } else {
    const auto connection = core_of(store).connect();
    copy_database(*connection, vfs, partial, options, now, result);
    core_of(store).check_place();
  }
  if (!result.finished) return result;
  result.bytes = static_cast<std::int64_t>(fs::file_size(partial.path()));
  partial.publish();
  return result;
}

}  // namespace stela::sqlite
