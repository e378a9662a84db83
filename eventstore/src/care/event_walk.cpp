#include "care/event_walk.hpp"

#include <algorithm>
#include <utility>

namespace stela::care {
namespace {

/// A page with large payloads ends earlier, so that its read transaction stays short.
constexpr std::size_t most_bytes = std::size_t{4} * 1024 * 1024;

}  // namespace

bool EventWalk::step() {
  if (next_ > last_) return false;
  const auto error = try_read([&](database::Connection& connection) { read_page(connection); });
  if (!error) {
    most_ = std::min(2 * most_, most_rows);
  } else if (most_ > 1) {
    // Only some rows of the page are unreadable.
    most_ /= 2;
  } else {
    lose(find_readable() - 1, *error);
  }
  return true;
}

void EventWalk::read_page(database::Connection& connection) {
  reader_->trim();
  bool is_empty = true;
  std::int64_t end = last_;
  std::size_t bytes = 0;
  reader_->read_range(connection,
                      {.first = next_, .last = last_, .most = most_, .with_tags = with_tags_},
                      [&](const database::EventRow& row) {
                        if (row.sequence < next_) {
                          meet_again(row.sequence);
                          end = next_;
                          return true;
                        }
                        is_empty = false;
                        lose(row.sequence - 1, {});
                        take(connection, row);
                        next_ = row.sequence + 1;
                        if (row.event != nullptr) bytes += row.event->payload.size();
                        return bytes <= most_bytes;
                      });
  if (is_empty) lose(end, {});
}

bool EventWalk::can_read(std::int64_t sequence) {
  return !try_read([&](database::Connection& connection) {
    reader_->read_range(connection,
                        {.first = sequence, .last = last_, .most = 1, .with_tags = with_tags_},
                        [](const database::EventRow&) { return false; });
  });
}

/// Approximately the first later event that is readable: a damaged page may hold many, so the steps
/// double, and then a binary search narrows the last one.
std::int64_t EventWalk::find_readable() {
  std::int64_t broken = next_;
  std::int64_t step = 1;
  while (broken < last_ && step < last_ - broken && !can_read(broken + step)) {
    broken += step;
    step *= 2;
  }
  std::int64_t readable = step < last_ - broken ? broken + step : last_ + 1;
  while (readable - broken > 1) {
    const std::int64_t middle = broken + (readable - broken) / 2;
    (can_read(middle) ? readable : broken) = middle;
  }
  return readable;
}

void EventWalk::lose(std::int64_t last, std::string why) {
  if (last < next_) return;
  if (gap_ && (gap_->last != next_ - 1 || gap_->why != why)) tell_of_gap();
  if (!gap_) gap_ = Gap{.first = next_, .last = last, .why = std::move(why)};
  gap_->last = last;
  next_ = last + 1;
}

void EventWalk::tell_of_gap() {
  if (const auto gap = std::exchange(gap_, std::nullopt)) tell(*gap);
}

}  // namespace stela::care
