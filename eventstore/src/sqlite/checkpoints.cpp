#include "sqlite/checkpoints.hpp"

#include "database/sqlite/failure.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace stela::sqlite {

Checkpoints::Checkpoints(Connection& connection, const Settings& settings)
    : database_{connection.handle()}, settings_{settings}, due_at_{settings.pages} {
  const auto on_commit = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Checkpoints*>(self)->log_pages_ = pages;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(database_, on_commit, this);
}

void Checkpoints::run_if_due() noexcept {
  if (log_pages_ < due_at_) return;
  // Waits for readers of older states, and then until nobody needs the log, so that the next commit
  // starts it over. Otherwise it would grow for ever, because readers come and go. All writers wait
  // meanwhile, so the wait is short; it grows after each failure.
  sqlite3_busy_timeout(database_, static_cast<int>(wait_.count()));
  int pages = 0;
  int moved = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(database_, "main", SQLITE_CHECKPOINT_RESTART, &pages, &moved);
  sqlite3_busy_timeout(database_, static_cast<int>(settings_.busy_timeout.count()));
  settings_.conventions->metrics->count(
      "stela_store_checkpoints_total", 1,
      {{"result", code == SQLITE_OK ? "complete" : "incomplete"}});
  if (code == SQLITE_OK) return begin_anew();
  due_at_ = log_pages_ + std::max(log_pages_ / 4, 1);
  wait_ = std::min(wait_ * 2, longest_wait);
  report(code, pages - moved);
}

CheckpointResult Checkpoints::run() {
  int pages = 0;
  int moved = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(database_, "main", SQLITE_CHECKPOINT_TRUNCATE, &pages, &moved);
  if (code != SQLITE_OK && code != SQLITE_BUSY) fail(database_, code, "the checkpoint");
  if (code == SQLITE_OK) begin_anew();
  return {.complete = code == SQLITE_OK, .pages_left = pages - moved};
}

void Checkpoints::run_at_once() noexcept {
  sqlite3_busy_timeout(database_, 0);
  sqlite3_wal_checkpoint_v2(database_, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

void Checkpoints::begin_anew() noexcept {
  log_pages_ = 0;
  due_at_ = settings_.pages;
  wait_ = shortest_wait;
}

void Checkpoints::report(int code, int pages_left) const noexcept {
  const bool is_held_up = code == SQLITE_BUSY;
  const std::array fields{LogEntry::Field{"wal_pages", std::to_string(log_pages_)},
                          LogEntry::Field{"pages_left", std::to_string(pages_left)},
                          LogEntry::Field{"result", sqlite3_errstr(code)}};
  settings_.conventions->log->write(
      {.level = LogLevel::warning,
       .name = "checkpoint.incomplete",
       .message = is_held_up ? "the write-ahead log grows, as a reader keeps an old state open"
                             : "the write-ahead log grows, as moving it into the database failed",
       .fields = fields});
}

}  // namespace stela::sqlite
