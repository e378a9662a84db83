// How far the log is known to be on disk.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/uuid.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace stela::postgres {

/// Commits are visible before they are durable. One thread flushes for all waiting threads, while
/// further ones queue for the next flush.
/// Threads: any number at once.
class Durability {
 public:
  explicit Durability(Sessions& sessions) noexcept : sessions_{sessions} {}

  using Time = std::chrono::steady_clock::time_point;

  /// Returns true once commits of `run` are durable: up to `sequence`, or without one all that the
  /// caller knows of. False if the run has ended, and may have lost them. StoreBusy or StoreFailed
  /// if the server is unreachable or doesn't confirm; StoreBusy, naming the standby, if the server
  /// still waits for one at the deadline.
  bool flush(const Uuid& run, std::optional<std::int64_t> sequence, Time deadline);
  /// Records that another flush in `run` covered the log up to `sequence`.
  void note(const Uuid& run, std::int64_t sequence) noexcept;

 private:
  bool covers(const Uuid& run, const std::optional<std::int64_t>& sequence,
              std::uint64_t wanted) const noexcept;
  /// Flushes over the flushing connection, which only the thread that set is_busy_ uses. Unset if a
  /// standby answered in place of the primary: it can't flush, and knows no run.
  std::optional<std::int64_t> flush_now(const Uuid& run, Time deadline);
  std::int64_t flush_on_session(Time deadline);
  /// Finds out, after the deadline, why the flush hasn't ended.
  void find_why(std::unique_lock<std::mutex>& lock);

  Sessions& sessions_;
  std::unique_ptr<ServerSession> session_;
  std::mutex asking_;
  std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_.
  bool is_busy_ = false;
  std::uint64_t begun_ = 0;
  /// Why flushes have failed since the last success; empty if none has.
  std::string why_;
  /// The last successful flush, its run, and the sequence that it covers.
  std::uint64_t done_ = 0;
  Uuid run_;
  std::int64_t sequence_ = 0;
};

}  // namespace stela::postgres
