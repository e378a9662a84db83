// How fast the outbox drains, from what was seen of it over the last minute.
#pragma once

#include <stela/outbox/messages.hpp>

#include <chrono>
#include <deque>
#include <optional>

namespace stela::tool {

/// What an outbox did lately.
struct Pace {
  /// By all workers, a second.
  double published = 0;
  /// How fast what waits grows, a second; below 0 it drains. 0 while too much waits to be counted.
  double growth = 0;
  /// Until no message is pending but those in stopped partitions, at this rate. Unset if there are
  /// none, the backlog doesn't shrink, or too little was seen of it.
  std::optional<std::chrono::seconds> time_to_drain = {};
};

/// Threads: one at a time.
class Trend {
 public:
  void add(const OutboxStatus& status);
  Pace pace() const;

 private:
  struct Seen {
    Timestamp at = {};
    std::int64_t published = 0;
    std::int64_t waiting = 0;
    /// Less those in stopped partitions.
    std::int64_t moving = 0;
    /// The two above are no lower bounds.
    bool is_counted = true;
  };
  std::deque<Seen> seen_;
};

}  // namespace stela::tool
