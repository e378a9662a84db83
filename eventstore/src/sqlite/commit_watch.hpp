// Wakes a thread that follows an SQLite store.
#pragma once

#include "database/commit_watch.hpp"
#include "database/sqlite/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace stela::sqlite {

class Core;

class STELA_EVENTSTORE_EXPORT CommitWatch final : public database::CommitWatch {
 public:
  /// `core` must outlive the watch.
  explicit CommitWatch(Core& core);
  ~CommitWatch() override;
  CommitWatch(const CommitWatch&) = delete;
  CommitWatch& operator=(const CommitWatch&) = delete;

  void wake() noexcept override;
  bool sees_all_commits() const noexcept override { return connection_ != nullptr; }
  void wait_until(Time deadline) override;

 private:
  /// True if `wake` was called.
  bool sleep_until(Time deadline);
  /// When to poll for commits that nobody announced.
  Time next_look() const;
  void watch_log();
  bool read_watch();
  bool sees_commit();

  /// The file that every commit writes to; empty for a private database.
  const std::string log_;
  /// A separate connection, because each connection counts the commits that it has seen; null
  /// without a log.
  const std::unique_ptr<Connection> connection_;
  int event_ = -1;
  int watch_ = -1;
  bool watching_ = false;
  /// The time of the last observed write to the log.
  Time written_at_ = {};
  std::int64_t seen_version_ = 0;
  std::atomic<bool> signalled_{false};
  Subscription commits_;
};

}  // namespace stela::sqlite
