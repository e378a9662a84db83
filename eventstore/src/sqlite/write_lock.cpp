#include "sqlite/write_lock.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stela::sqlite {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/// How long a turn may stay unused before it is passed over.
constexpr auto short_hold = 100ms;

void pause_for(nanoseconds time) noexcept {
  const timespec wait{0, static_cast<long>(time.count())};
  nanosleep(&wait, nullptr);
}

/// The first byte that another process has locked, or -1.
long locked_byte(int file, long from, long length) noexcept {
  struct flock range = byte_range(F_WRLCK, from, length);
  const bool is_locked = fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  return is_locked ? range.l_start : -1;
}

}  // namespace

/// A place in the queue: a byte of the file, locked for as long as its owner waits. The byte's
/// number is the time of arrival, so waiters queue in order; the system removes dead processes.
class WriteLock::Turn {
 public:
  explicit Turn(WriteLock& lock) : lock_{lock}, place_{moment()} {
    struct flock range = byte_range(F_WRLCK, place_, 1);
    while (fcntl(file(), F_OFD_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) {
      range.l_start = ++place_;
    }
  }
  ~Turn() {
    struct flock range = byte_range(F_UNLCK, place_, 1);
    fcntl(file(), F_OFD_SETLK, &range);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Takes the lock if it is free and no earlier waiter is due.
  bool take() {
    const long ahead = locked_byte(file(), lock_.first_turn_, place_ - lock_.first_turn_);
    if (ahead < 0) return lock_.try_lock();
    const auto now = steady_clock::now();
    if (std::exchange(ahead_, ahead) != ahead || !lock_.try_lock()) {
      moved_at_ = now;
      return false;
    }
    if (now - moved_at_ < short_hold) {
      lock_.unlock();
      return false;
    }
    lock_.first_turn_ = ahead + 1;
    return true;
  }

 private:
  static long moment() { return static_cast<long>(steady_clock::now().time_since_epoch().count()); }
  int file() const noexcept { return lock_.file_->descriptor(); }

  WriteLock& lock_;
  long place_;
  long ahead_ = -1;
  /// When the queue or the lock last moved.
  steady_clock::time_point moved_at_ = {};
};

WriteLock::WriteLock(const std::string& database) {
  if (!database.empty()) file_.emplace(database);
}

bool WriteLock::try_lock() {
  if (!file_) return true;
  owner_.check();
  for (;;) {
    while (flock(file_->descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno != EINTR) {
        throw StoreFailed{"taking the lock '" + file_->path() +
                          "' failed: " + std::strerror(errno)};
      }
    }
    if (!file_->is_deleted()) return true;
    // The file was removed, and other processes would lock another one.
    file_->reopen();
  }
}

void WriteLock::lock(std::chrono::milliseconds timeout) {
  if (!file_) return;
  const bool is_line_empty =
      locked_byte(file_->descriptor(), first_turn_, first_presence - first_turn_) < 0;
  if (is_line_empty && try_lock()) return;
  Turn turn{*this};
  const auto began = steady_clock::now();
  while (!turn.take()) {
    // The kernel's own queue has no deadline, so the lock is polled: often at first, because it is
    // usually held for the length of one commit.
    const auto waited = steady_clock::now() - began;
    if (waited >= timeout) throw_busy(timeout);
    pause_for(std::clamp<nanoseconds>(waited / 8, 20us, 1ms));
  }
}

void WriteLock::throw_busy(std::chrono::milliseconds timeout) const {
  const std::string holder = holder_of_lock(file_->path(), "FLOCK", "0");
  // Another program, which ignores this lock, may be blocking its holder.
  const std::string writer = holder_of_transaction(file_->database());
  throw StoreBusy{"the write lock '" + file_->path() + "' couldn't be had for " +
                  std::to_string(timeout.count()) + " ms; it is held by " +
                  (holder.empty() ? "a process that isn't seen from here" : holder) +
                  (writer.empty() || writer == holder
                       ? ""
                       : ", which waits for " + writer + " to end its transaction") +
                  "; nothing was written; try again"};
}

void WriteLock::unlock() noexcept {
  if (file_ && !file_->is_lost()) flock(file_->descriptor(), LOCK_UN);
}

}  // namespace stela::sqlite
