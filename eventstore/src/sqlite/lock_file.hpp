// The file beside a database that carries its locks.
#pragma once

#include <stela/eventstore/export.hpp>

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// Bytes of the lock file from this one on belong to presences; the others form the queue for the
/// write lock.
inline constexpr std::int64_t first_presence = std::int64_t{1} << 62;

/// The `fcntl` request for `length` bytes; 0: up to the end.
struct flock byte_range(short type, std::int64_t from, std::int64_t length) noexcept;

/// An open lock file, which isn't passed to forked children: a lock belongs to every process that
/// has the file open, and would outlive its owner in a forked helper.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT LockFile {
 public:
  /// Opens `<database>-lock`, or creates it with the mode and owner of the database. StoreFailed if
  /// it is a link, or not writable for this user.
  explicit LockFile(const std::string& database);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  static std::string path_of(const std::string& database) { return database + "-lock"; }

  /// Opens the file that is at its path now.
  void reopen();
  /// True if the file was deleted or replaced, so that other processes open another one.
  bool is_deleted() const noexcept;

  int descriptor() const noexcept { return descriptor_; }
  /// True in a forked child.
  bool is_lost() const noexcept { return descriptor_ < 0; }
  const std::string& path() const noexcept { return path_; }
  const std::string& database() const noexcept { return database_; }

 private:
  friend class OpenLockFiles;
  int open_or_make() const;

  const std::string database_;
  const std::string path_;
  int descriptor_ = -1;
};

/// The holder of a write lock of `kind` ("FLOCK", "POSIX") on a file, from a byte on: "process 17
/// (orders)". Empty if the system can't tell.
std::string holder_of_lock(const std::string& path, std::string_view kind, std::string_view from);
/// The process in a write transaction of a database, in the same form: its lock is a byte of the
/// file beside the log.
std::string holder_of_transaction(const std::string& database);

}  // namespace stela::sqlite
