// How fast the outbox publishes and drains, observed over the last hour.
#pragma once

#include "worker/statistics.hpp"

#include <stela/outbox/messages.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <vector>

namespace stela::tool {

/// The change of the backlog in the last minute.
struct Pace {
  /// The growth of the backlog per second. Below 0 it drains. 0 while it is too large to count.
  double growth = 0;
  /// The time until only messages in stopped partitions are pending, at this rate. Unset if none
  /// are pending, the backlog doesn't shrink, or too little was observed.
  std::optional<std::chrono::seconds> time_to_drain = {};
};

/// Per second, over the last 1, 5 and 60 minutes, or the known part of them. Unset while that is no
/// longer than the next shorter span.
using Speed = std::array<std::optional<double>, 3>;

/// Messages per second.
struct Throughput {
  /// First what all workers published, then the work of this process.
  enum Series : std::uint8_t { all, claimed, published, failed };

  std::array<Speed, 4> speeds = {};
  /// By all workers, in the last ten seconds.
  std::optional<double> now = {};
  /// By all workers in the last hour, in steps of two minutes, oldest first. Unset where it is
  /// unknown.
  std::array<std::optional<double>, 30> curve = {};
};

/// Threads: one at a time.
class Trend {
 public:
  /// `own` is the work of this process since it started.
  void add(const OutboxStatus& status, const Totals& own = {});
  /// Adds publications from before the first status: the newest batches, latest first. `is_whole`:
  /// they cover the last hour.
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
    /// Without those in stopped partitions.
    std::int64_t moving = 0;
    /// False if the two numbers above are lower bounds.
    bool is_counted = true;
  };

  /// The last observation up to that time.
  const Seen& seen_at(Timestamp time) const;
  /// Unset if too little is known of that time.
  std::optional<double> rate(Throughput::Series series, Timestamp begin, Timestamp end) const;

  std::deque<Seen> seen_;
};

}  // namespace stela::tool
