#include "sqlite/lock_file.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

namespace stela::sqlite {

/// The lock files that this process has open, for a forked child to close. The only global object
/// here, because a fork also affects the entire process.
class OpenLockFiles {
 public:
  static OpenLockFiles& of_process() {
    // Never destroyed: a fork may come after the end of main.
    static OpenLockFiles* const files = new OpenLockFiles;
    return *files;
  }

  /// Prevents a fork between opening the file and listing it.
  void open(LockFile& file) {
    const std::lock_guard lock{mutex_};
    files_.push_back(&file);
    try {
      file.descriptor_ = file.open_or_make();
    } catch (...) {
      files_.pop_back();
      throw;
    }
  }
  void reopen(LockFile& file) {
    const std::lock_guard lock{mutex_};
    close(std::exchange(file.descriptor_, file.open_or_make()));
  }
  void remove(LockFile& file) noexcept {
    const std::lock_guard lock{mutex_};
    files_.erase(std::find(files_.begin(), files_.end(), &file));
    if (file.descriptor_ >= 0) close(file.descriptor_);
  }

 private:
  OpenLockFiles() {
    pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] { of_process().close_in_child(); });
  }

  void close_in_child() noexcept {
    for (LockFile* const file : files_) close(std::exchange(file->descriptor_, -1));
    mutex_.unlock();
  }

  std::mutex mutex_;
  /// The list and the files' descriptors are guarded by mutex_.
  std::vector<LockFile*> files_;
};

namespace {

constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

/// Whoever may write to the database may lock it, whoever created the lock file: a new file gets
/// the database's owner and mode, as far as this user may set them.
void adopt(int descriptor, const struct stat& database) noexcept {
  const uid_t owner = geteuid() == 0 ? database.st_uid : static_cast<uid_t>(-1);
  [[maybe_unused]] const int owned = fchown(descriptor, owner, database.st_gid);
  [[maybe_unused]] const int changed = fchmod(descriptor, database.st_mode & 0666);
}

bool is_regular(int descriptor) noexcept {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw StoreFailed{"opening the lock file '" + path + "' failed: " + reason};
}

std::string reason_of(int error) {
  if (error == ELOOP) return "it is a symbolic link; remove it";
  return std::string{std::strerror(error)} +
         "; this user must be allowed to write to it and to its folder";
}

}  // namespace

struct flock byte_range(short type, std::int64_t from, std::int64_t length) noexcept {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = from;
  range.l_len = length;
  return range;
}

LockFile::LockFile(const std::string& database) : database_{database}, path_{path_of(database)} {
  OpenLockFiles::of_process().open(*this);
}

LockFile::~LockFile() {
  OpenLockFiles::of_process().remove(*this);
}

void LockFile::reopen() {
  OpenLockFiles::of_process().reopen(*this);
}

bool LockFile::is_deleted() const noexcept {
  struct stat status {};
  return fstat(descriptor_, &status) == 0 && status.st_nlink == 0;
}

int LockFile::open_or_make() const {
  struct stat database {};
  // If the database is missing, opening it fails later, but that already needs a lock.
  if (stat(database_.c_str(), &database) != 0) database.st_mode = 0600;
  int descriptor = -1;
  // Repeated only if another process creates or removes the file in between.
  for (int attempt = 0; descriptor < 0 && attempt < 100; ++attempt) {
    descriptor = ::open(path_.c_str(), flags);
    if (descriptor >= 0 || errno != ENOENT) break;
    descriptor = ::open(path_.c_str(), flags | O_CREAT | O_EXCL, database.st_mode & 0666);
    if (descriptor >= 0 && database.st_ino != 0) adopt(descriptor, database);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) fail(path_, reason_of(errno));
  if (is_regular(descriptor)) return descriptor;
  close(descriptor);
  fail(path_, "it isn't a file; remove it");
}

std::string holder_of_lock(const std::string& path, std::string_view kind, std::string_view from) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  std::ostringstream file;
  file << std::hex;
  for (const unsigned number : {major(status.st_dev), minor(status.st_dev)}) {
    file << (number < 16 ? "0" : "") << number << ':';
  }
  file << std::dec << status.st_ino;
  // "5: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
  std::ifstream locks{"/proc/locks"};
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words{line};
    std::string number, its_kind, advisory, mode, process, its_file, its_from;
    words >> number >> its_kind >> advisory >> mode >> process >> its_file >> its_from;
    if (its_kind != kind || mode != "WRITE" || its_file != file.str() || its_from != from) continue;
    std::string name;
    std::getline(std::ifstream{"/proc/" + process + "/comm"}, name);
    return "process " + process + (name.empty() ? "" : " (" + name + ')');
  }
  return {};
}

std::string holder_of_transaction(const std::string& database) {
  return holder_of_lock(database + "-shm", "POSIX", "120");
}

}  // namespace stela::sqlite
