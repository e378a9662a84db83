// How fast the outbox is published and drains, from what was seen of it over the last hour.
#pragma once

#include "worker/statistics.hpp"

#include <stela/outbox/messages.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <vector>

namespace stela::tool {

/// How the backlog changed in the last minute.
struct Pace {
  /// How fast what waits grows, a second; below 0 it drains. 0 while too much waits to be counted.
  double growth = 0;
  /// Until no message is pending but those in stopped partitions, at this rate. Unset if there are
  /// none, the backlog doesn't shrink, or too little was seen of it.
  std::optional<std::chrono::seconds> time_to_drain = {};
};

/// A second, over the last 1, 5 and 60 minutes, or as much of them as is known. Unset as long as
/// that is no more than the next shorter one has.
using Speed = std::array<std::optional<double>, 3>;

/// Messages a second.
struct Throughput {
  /// Published by all workers; then what this process did.
  enum Series : std::uint8_t { all, claimed, published, failed };

  std::array<Speed, 4> speeds = {};
  /// By all workers in the last ten seconds.
  std::optional<double> now = {};
  /// By all workers in the last hour, in pieces of two minutes, the newest the last; unset where it
  /// isn't known.
  std::array<std::optional<double>, 30> curve = {};
};

/// Threads: one at a time.
class Trend {
 public:
  /// `own` is what this process did since it started.
  void add(const OutboxStatus& status, const Totals& own = {});
  /// What was published before the first status was seen: the newest batches, the latest first, and
  /// whether they are all of the last hour.
  void add_past(const OutboxStatus& status, const std::vector<PublishedBatch>& batches,
                bool is_whole);
  bool is_empty() const noexcept { return seen_.empty(); }
  Pace pace() const;
  Throughput throughput() const;

 private:
  struct Seen {
    Timestamp at = {};
    /// By Throughput::Series.
    std::array<std::int64_t, 4> counts = {};
    std::int64_t waiting = 0;
    /// Less those in stopped partitions.
    std::int64_t moving = 0;
    /// The two above are no lower bounds.
    bool is_counted = true;
  };

  /// The last that was seen until then.
  const Seen& seen_at(Timestamp time) const;
  /// Unset if too little is known of that time.
  std::optional<double> rate(Throughput::Series series, Timestamp begin, Timestamp end) const;

  std::deque<Seen> seen_;
};

}  // namespace stela::tool
