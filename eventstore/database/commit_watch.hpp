// Lets a thread that follows a store sleep until there may be new commits.
#pragma once

#include <stela/eventstore/export.hpp>

#include <chrono>

namespace stela::database {

/// Wakes at once at a commit of this process, and within milliseconds at one of another process. A
/// wake-up carries no data and may be spurious: read the tables.
/// Threads: `wake` from any; the rest belongs to the thread that sleeps.
class STELA_EVENTSTORE_EXPORT CommitWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~CommitWatch() = default;

  virtual void wake() noexcept = 0;
  /// Whether it also wakes at commits without events. False for a database in memory.
  virtual bool sees_all_commits() const noexcept = 0;
  /// Sleeps until a commit may have happened or `wake` was called, at most until `deadline`.
  virtual void wait_until(Time deadline) = 0;
};

}  // namespace stela::database
