// Walks the events in store order, past missing and unreadable ones.
#pragma once

#include "database/database.hpp"
#include "database/event_reader.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stela::care {

/// Threads: one at a time.
class EventWalk {
 public:
  virtual ~EventWalk() = default;

 protected:
  /// A range of skipped events.
  struct Gap {
    std::int64_t first;
    std::int64_t last;
    /// Why they are unreadable; empty if they are missing.
    std::string why;
  };

  explicit EventWalk(std::unique_ptr<database::EventReader> reader) : reader_{std::move(reader)} {}

  /// Starts at `first`, and ends after `last`.
  void set_range(std::int64_t first, std::int64_t last, bool with_tags = false) noexcept {
    next_ = first;
    last_ = last;
    with_tags_ = with_tags;
  }
  /// Reads a page. False at the end.
  bool step();
  /// The position after the last row that was read.
  std::int64_t next() const noexcept { return next_; }
  /// Skips the events from the next one through `last`, for the caller's reason.
  void lose(std::int64_t last, std::string why);
  /// Call it after the last `step`.
  void tell_of_gap();

 private:
  static constexpr std::int64_t most_rows = 1024;

  /// Runs `work` in a read transaction. Returns the error, if there was one.
  virtual std::optional<std::string> try_read(database::Database::Work work) = 0;
  /// Takes the next row, which may be damaged.
  virtual void take(database::Connection& connection, const database::EventRow& row) = 0;
  /// A row came again after it was passed: some pages of the file replace others.
  virtual void meet_again(std::int64_t sequence) = 0;
  /// Merges adjacent events with one reason, so later rows may be taken before this call.
  virtual void tell(const Gap& gap) = 0;

  void read_page(database::Connection& connection);
  bool can_read(std::int64_t sequence);
  std::int64_t find_readable();

  std::unique_ptr<database::EventReader> reader_;
  std::int64_t next_ = 1;
  std::int64_t last_ = 0;
  bool with_tags_ = false;
  /// Rows per page: fewer near unreadable events.
  std::int64_t most_ = most_rows;
  std::optional<Gap> gap_;
};

}  // namespace stela::care
