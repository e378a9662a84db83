// Decides when to move the write-ahead log into the database, and tracks its length.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>

#include <chrono>

namespace stela::sqlite {

/// The log of a writing connection, and the checkpoints that keep it short.
/// Threads: the leader of the writer, under the write lock.
class Checkpoints {
 public:
  struct Settings {
    /// The length at which a checkpoint is due.
    int pages = 4000;
    std::chrono::milliseconds busy_timeout{5000};
    const Conventions* conventions = nullptr;
  };

  /// `connection` reports the log's length after each commit, and must outlive it.
  Checkpoints(Connection& connection, const Settings& settings);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// The log's length after the last commit.
  int log_pages() const noexcept { return log_pages_; }

  /// Moves a long log into the database, so that the next commit starts it over. A failure is
  /// logged, and retried when the log has grown further.
  void run_if_due() noexcept;
  /// Moves and empties the log, waiting for readers of an older state.
  CheckpointResult run();
  /// The same at closing: without waiting, and as far as possible.
  void run_at_once() noexcept;

 private:
  static constexpr std::chrono::milliseconds shortest_wait{20};
  static constexpr std::chrono::milliseconds longest_wait{160};

  void begin_anew() noexcept;
  void report(int code, int pages_left) const noexcept;

  sqlite3* const database_;
  const Settings settings_;
  int log_pages_ = 0;
  int due_at_;
  std::chrono::milliseconds wait_ = shortest_wait;
};

}  // namespace stela::sqlite
