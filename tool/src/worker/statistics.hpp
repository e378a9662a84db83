// Statistics of the relays in this process.
#pragma once

#include "description/histogram.hpp"

#include <stela/framework/clock.hpp>
#include <stela/framework/log.hpp>
#include <stela/outbox/relay.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

using Steady = std::chrono::steady_clock::time_point;

/// Counts of one tick, or of many.
struct Totals {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  std::int64_t retried = 0;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
  std::int64_t fenced = 0;
  std::int64_t read_backs = 0;
  std::int64_t purged_stale = 0;
  std::int64_t leased = 0;
  std::int64_t released = 0;

  void add(const RelayTick& tick) noexcept;
};

/// An error that occurred.
struct RecentError {
  /// Unset: it persists, and its beginning is unknown.
  std::optional<Timestamp> at = {};
  /// 0 if it isn't about one message.
  std::int64_t sequence = 0;
  /// The partition, or the worker.
  std::string subject = {};
  std::string stream = {};
  std::string message = {};
  /// The number of others with the same error.
  std::int64_t others = 0;
};

/// All figures at one moment.
struct Figures {
  /// The number of ticks in `totals`: those of the window, or only the last.
  std::int64_t ticks = 0;
  Totals totals = {};
  Totals ever = {};
  std::int64_t ticks_ever = 0;
  std::chrono::microseconds mean_duration{0};
  std::chrono::microseconds last_backoff{0};
  std::chrono::microseconds heartbeat_age{0};
  std::int64_t active_workers = 0;
  std::int64_t wanted = 0;
  std::int64_t owned = 0;
  /// The worst state that the relays report. Unset before the first tick.
  std::optional<BrokerStatus> broker = {};
  std::vector<RecentError> troubles = {};
  Histogram publish_latency = {};
  Histogram end_to_end = {};
  /// Over messages published in the last minute.
  std::optional<std::chrono::microseconds> latency_p50 = {};
  std::optional<std::chrono::microseconds> latency_p99 = {};
};

/// Also the log of this process: it keeps the errors. Threads: any.
class Statistics final : public LogSink {
 public:
  static constexpr std::size_t kept_troubles = 100;

  struct Options {
    int relays = 1;
    /// 0: only the last tick.
    std::chrono::seconds window{0};
    /// The log to forward entries to. Null: none.
    LogSink* next = nullptr;
  };
  explicit Statistics(const Options& options);

  void add(int relay, const RelayTick& tick, Steady now);
  /// From sending to the broker's answer.
  void add_publish_latency(std::chrono::microseconds latency);
  /// From commit to publication.
  void add_end_to_end(std::chrono::microseconds latency, Steady now);
  void write(const LogEntry& entry) noexcept override;

  Figures look(Steady now) const;

 private:
  struct Relay {
    RelayTick last = {};
    Steady heartbeat = {};
    bool has_ticked = false;
  };
  struct Kept {
    Steady at;
    RelayTick tick;
  };
  struct Latency {
    Steady at;
    std::chrono::microseconds length;
  };

  const Options options_;
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::vector<Relay> relays_;
  std::deque<Kept> recent_;
  Totals ever_;
  std::int64_t ticks_ever_ = 0;
  std::deque<RecentError> troubles_;
  std::deque<Latency> latencies_;
  Histogram publish_latency_;
  Histogram end_to_end_;
};

}  // namespace stela::tool
