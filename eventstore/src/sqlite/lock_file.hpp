// The file beside a database that its locks are taken on.
#pragma once

#include <stela/eventstore/export.hpp>

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// Bytes of the lock file from this one on are those of presences; those before it are of the line
/// for the write lock.
inline constexpr std::int64_t first_presence = std::int64_t{1} << 62;

/// What `fcntl` is asked about `length` bytes; 0: up to the end.
struct flock byte_range(short type, std::int64_t from, std::int64_t length) noexcept;

/// An open lock file, of which a forked child has no copy: a lock belongs to whoever has the file
/// open, and would outlive its holder in a helper that this forked.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT LockFile {
 public:
  /// Opens `<database>-lock`, or makes it with the mode and owner of the database. StoreFailed if
  /// that is a link, or this user may not write to it.
  explicit LockFile(const std::string& database);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  static std::string path_of(const std::string& database) { return database + "-lock"; }

  /// Opens what is at its path now.
  void reopen();
  /// True if others, who open what is at its path, get another file.
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

/// Who holds a lock of `kind` ("FLOCK", "POSIX") to write on a file, from a byte on: "process 17
/// (orders)". Empty if the system doesn't say.
std::string holder_of_lock(const std::string& path, std::string_view kind, std::string_view from);
/// Who is in a write transaction of a database, in the same words: its lock is a byte of the file
/// beside the log.
std::string holder_of_transaction(const std::string& database);

}  // namespace stela::sqlite
