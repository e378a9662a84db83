// The lock that keeps writers and checkpoints of one database apart, across threads and processes.
#pragma once

#include "database/owner.hpp"
#include "sqlite/lock_file.hpp"

#include <stela/eventstore/export.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace stela::sqlite {

/// An exclusive flock on a file of its own beside the database, and a line for those who wait.
///
/// SQLite from 3.7.0 up to 3.51.2 can lose committed writes when a checkpoint overlaps a commit of
/// another connection that resets the WAL. Every write transaction of Stela holds this lock from
/// before BEGIN until after COMMIT, and checkpoints run under it, so that they never overlap.
/// Whoever finds it taken stands in line, and gets it before those who come later; only a process
/// that doesn't take its turn, as it was stopped, is passed over.
/// Threads: one at a time; every writing connection has a lock of its own.
class STELA_EVENTSTORE_EXPORT WriteLock {
 public:
  /// Makes the file if need be. An empty path makes a lock that guards nothing: for databases that
  /// nobody else can see.
  explicit WriteLock(const std::string& database);
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

  /// StoreBusy, which names the holder, if others hold it for longer than `timeout`. UsageError in
  /// a forked child.
  void lock(std::chrono::milliseconds timeout);
  /// Whoever stands in line is passed over.
  bool try_lock();
  void unlock() noexcept;

 private:
  class Turn;

  [[noreturn]] void throw_busy(std::chrono::milliseconds timeout) const;

  const database::OwningProcess owner_;
  std::optional<LockFile> file_;
  /// Turns before this one weren't taken, and don't count.
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
