// The lock that keeps writers and checkpoints of one database apart, across threads and processes.
#pragma once

#include <stela/framework/clock.hpp>

#include <chrono>
#include <string>

namespace stela::sqlite {

/// An exclusive flock on a file of its own beside the database.
///
/// SQLite from 3.7.0 up to 3.51.2 can lose committed writes when a checkpoint overlaps a commit of
/// another connection that resets the WAL. Every write transaction of Stela holds this lock from
/// before BEGIN until after COMMIT, and checkpoints run under it, so that they never overlap.
/// Threads: one at a time; every writing connection has a lock of its own.
class WriteLock {
 public:
  /// Creates the file if need be. An empty path makes a lock that guards nothing: for databases
  /// that nobody else can see.
  explicit WriteLock(std::string path);
  ~WriteLock();
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

  /// StoreBusy if somebody else holds it for longer than `timeout`.
  void lock(std::chrono::milliseconds timeout);
  bool try_lock();
  void unlock() noexcept;

 private:
  void open_file();
  bool is_deleted() const noexcept;

  std::string path_;
  int file_ = -1;
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
