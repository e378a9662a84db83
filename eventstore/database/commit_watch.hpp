// Where a thread sleeps that follows a store, and what wakes it.
#pragma once

#include <stela/eventstore/export.hpp>

#include <chrono>

namespace stela::database {

/// Wakes at a commit of this process at once, and at one of another process within milliseconds.
/// A wake-up carries nothing and may be needless: look into the tables.
/// Threads: `wake` from any; the rest belongs to the thread that sleeps.
class STELA_EVENTSTORE_EXPORT CommitWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~CommitWatch() = default;

  virtual void wake() noexcept = 0;
  /// Whether it also wakes at commits without events. False of a database in memory.
  virtual bool sees_all_commits() const noexcept = 0;
  /// Sleeps until something may have been committed or `wake` was called, at most until `deadline`.
  virtual void wait_until(Time deadline) = 0;
};

}  // namespace stela::database
