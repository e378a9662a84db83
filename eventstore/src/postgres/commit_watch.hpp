// What wakes a thread that follows the store.
#pragma once

#include "database/commit_watch.hpp"
#include "postgres/server_session.hpp"

#include <stela/framework/event_store.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace stela::postgres {

/// Looks for other processes' events, more often while they come: a notification would take a lock
/// of the whole server at each commit.
class CommitWatch final : public database::CommitWatch {
 public:
  CommitWatch(EventStore& store, Sessions& sessions);
  ~CommitWatch() override { commits_.disconnect(); }
  CommitWatch(const CommitWatch&) = delete;
  CommitWatch& operator=(const CommitWatch&) = delete;

  void wake() noexcept override;
  bool sees_all_commits() const noexcept override { return false; }
  void wait_until(Time deadline) override;

 private:
  /// False if time has passed.
  bool sleep_until(Time deadline);
  bool sees_events();

  Sessions& sessions_;
  Subscription commits_;
  std::mutex mutex_;
  std::condition_variable woken_;
  /// Guarded by mutex_.
  bool is_woken_ = false;
  // The sleeping thread's own.
  Time next_look_ = {};
  Time last_came_ = {};
  std::int64_t seen_ = 0;
};

}  // namespace stela::postgres
