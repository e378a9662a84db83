// Wakes a thread that follows the store.
#pragma once

#include "database/commit_watch.hpp"
#include "postgres/doorbell.hpp"
#include "postgres/server_session.hpp"

#include <stela/framework/event_store.hpp>

#include <cstdint>

namespace stela::postgres {

/// Sleeps at the doorbell. Without one, it polls for events of other processes, more often while
/// they come.
class CommitWatch final : public database::CommitWatch {
 public:
  CommitWatch(EventStore& store, Sessions& sessions);
  ~CommitWatch() override;
  CommitWatch(const CommitWatch&) = delete;
  CommitWatch& operator=(const CommitWatch&) = delete;

  void wake() noexcept override;
  bool sees_all_commits() const noexcept override { return false; }
  void wait_until(Time deadline) override;

 private:
  /// False after a time-out.
  bool sleep_until(Time deadline);
  bool sees_events();

  Sessions& sessions_;
  /// Becomes readable at a wake-up.
  const int woken_;
  Subscription commits_;
  // Only the sleeping thread uses these.
  Doorbell bell_;
  Time next_look_ = {};
  Time last_came_ = {};
  std::int64_t seen_ = 0;
};

}  // namespace stela::postgres
