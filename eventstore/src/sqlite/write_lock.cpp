#include "sqlite/write_lock.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stela::sqlite {
namespace {

using std::chrono::steady_clock;

void pause_for(std::chrono::nanoseconds time) noexcept {
  const timespec wait{0, static_cast<long>(time.count())};
  nanosleep(&wait, nullptr);
}

[[noreturn]] void fail(const std::string& path, const char* doing) {
  throw StoreFailed{std::string{doing} + " the lock file '" + path +
                    "' failed: " + std::strerror(errno) +
                    "; this user must be allowed to write to it and to its folder"};
}

}  // namespace

WriteLock::WriteLock(std::string path) : path_{std::move(path)} {
  if (!path_.empty()) open_file();
}

WriteLock::~WriteLock() {
  if (file_ >= 0) close(file_);
}

void WriteLock::open_file() {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) fail(path_, "opening");
  if (file_ >= 0) close(file_);
  file_ = file;
}

bool WriteLock::is_deleted() const noexcept {
  struct stat status {};
  return fstat(file_, &status) == 0 && status.st_nlink == 0;
}

bool WriteLock::try_lock() {
  if (file_ < 0) return true;
  for (;;) {
    while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno != EINTR) fail(path_, "taking");
    }
    if (!is_deleted()) return true;
    // Somebody has tidied the file away, and others would lock another one.
    open_file();
  }
}

void WriteLock::lock(std::chrono::milliseconds timeout) {
  if (try_lock()) return;
  // The kernel's own queue has no deadline, so the lock is polled: often at first, as it is usually
  // held for the length of one commit.
  const auto deadline = steady_clock::now() + timeout;
  std::chrono::nanoseconds wait = std::chrono::microseconds{20};
  while (!try_lock()) {
    if (steady_clock::now() >= deadline) {
      throw StoreBusy{"another process or connection has held the write lock '" + path_ +
                      "' for more than " + std::to_string(timeout.count()) +
                      " ms; nothing was written; try again"};
    }
    pause_for(wait);
    wait = std::min<std::chrono::nanoseconds>(wait * 2, std::chrono::milliseconds{1});
  }
}

void WriteLock::unlock() noexcept {
  if (file_ >= 0) flock(file_, LOCK_UN);
}

}  // namespace stela::sqlite
