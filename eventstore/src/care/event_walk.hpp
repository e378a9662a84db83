// Going through the events in the order of the store, past those that are missing or can't be read.
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
  /// Events that it passes over.
  struct Gap {
    std::int64_t first;
    std::int64_t last;
    /// Why they can't be read; empty if they are missing.
    std::string why;
  };

  explicit EventWalk(std::unique_ptr<database::EventReader> reader) : reader_{std::move(reader)} {}

  /// Begins with `first`, and ends after `last`.
  void set_range(std::int64_t first, std::int64_t last, bool with_tags = false) noexcept {
    next_ = first;
    last_ = last;
    with_tags_ = with_tags;
  }
  /// Reads a page. False at the end.
  bool step();
  /// What follows what was read.
  std::int64_t next() const noexcept { return next_; }
  /// Passes over the events from the next one through `last`, for a reason of the caller's.
  void lose(std::int64_t last, std::string why);
  /// Once `step` isn't called again.
  void tell_of_gap();

 private:
  static constexpr std::int64_t most_rows = 1024;

  /// Runs `work` in a read transaction. What went wrong.
  virtual std::optional<std::string> try_read(database::Database::Work work) = 0;
  /// Takes the next row, which may be damaged.
  virtual void take(database::Connection& connection, const database::EventRow& row) = 0;
  /// A row came that has been passed: pages stand in the place of others.
  virtual void meet_again(std::int64_t sequence) = 0;
  /// Adjacent events with one reason come together, so that rows after them may come before.
  virtual void tell(const Gap& gap) = 0;

  void read_page(database::Connection& connection);
  bool can_read(std::int64_t sequence);
  std::int64_t find_readable();

  std::unique_ptr<database::EventReader> reader_;
  std::int64_t next_ = 1;
  std::int64_t last_ = 0;
  bool with_tags_ = false;
  /// Rows of a page: fewer near those that can't be read.
  std::int64_t most_ = most_rows;
  std::optional<Gap> gap_;
};

}  // namespace stela::care
