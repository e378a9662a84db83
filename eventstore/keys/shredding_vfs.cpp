#include "shredding_vfs.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace stela::keys {
namespace {

constexpr const char* vfs_name = "stela-shredding";

sqlite3_vfs* platform() {
  static sqlite3_vfs* const found = sqlite3_vfs_find(nullptr);
  return found;
}

bool fill_with_zeros(int file, off_t size) noexcept {
  static constexpr std::array<char, 65536> zeros{};
  for (off_t at = 0; at < size;) {
    const auto part = static_cast<std::size_t>(std::min<off_t>(size - at, zeros.size()));
    const ssize_t written = ::pwrite(file, zeros.data(), part, at);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) at += written;
  }
  return ::fsync(file) == 0;
}

/// SQLite deletes a journal under its own lock, after the database was synced.
int shred(sqlite3_vfs*, const char* path, int sync_folder) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file >= 0) {
    struct stat status {};
    const bool is_done = ::fstat(file, &status) == 0 && fill_with_zeros(file, status.st_size);
    ::close(file);
    if (!is_done) return SQLITE_IOERR_DELETE;
  }
  return platform()->xDelete(platform(), path, sync_folder);
}

bool make() {
  static sqlite3_vfs made = *platform();
  made.pNext = nullptr;
  made.zName = vfs_name;
  made.xDelete = shred;
  return sqlite3_vfs_register(&made, 0) == SQLITE_OK;
}

}  // namespace

const char* shredding_vfs() {
  static const bool is_made = make();
  return is_made ? vfs_name : nullptr;
}

}  // namespace stela::keys
