// The lock that separates writers and checkpoints of one database, across threads and processes.
#pragma once

#include "database/owner.hpp"
#include "sqlite/lock_file.hpp"

#include <stela/eventstore/export.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace stela::sqlite {

/// An exclusive flock on a separate file beside the database, and a queue of waiters.
///
/// SQLite from 3.7.0 up to 3.51.2 can lose committed writes when a checkpoint overlaps a commit of
/// another connection that resets the WAL. Every write transaction of Stela holds this lock from
/// before BEGIN until after COMMIT, and checkpoints run under it, so that they never overlap.
/// Waiters queue, and get the lock before later ones; only a stopped process that doesn't take its
/// turn is passed over.
/// Threads: one at a time; every writing connection has a lock of its own.
class STELA_EVENTSTORE_EXPORT WriteLock {
 public:
  /// Creates the file if necessary. With an empty path, for a private database, the lock guards
  /// nothing.
  explicit WriteLock(const std::string& database);
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

  /// StoreBusy, naming the holder, if others hold it for longer than `timeout`. UsageError in a
  /// forked child.
  void lock(std::chrono::milliseconds timeout);
  /// Overtakes the queue.
  bool try_lock();
  void unlock() noexcept;

 private:
  class Turn;

  [[noreturn]] void throw_busy(std::chrono::milliseconds timeout) const;

  const database::OwningProcess owner_;
  std::optional<LockFile> file_;
  /// Earlier turns weren't taken, and don't count.
  long first_turn_ = 0;
};

/// Holds the lock for a scope.
class WriteLockGuard {
 public:
  WriteLockGuard(WriteLock& lock, std::chrono::milliseconds timeout) : lock_{lock} {
    lock_.lock(timeout);
  }
  ~WriteLockGuard() { lock_.unlock(); }
  WriteLockGuard(const WriteLockGuard&) = delete;
  WriteLockGuard& operator=(const WriteLockGuard&) = delete;

 private:
  WriteLock& lock_;
};

}  // namespace stela::sqlite
