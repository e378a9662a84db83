// Tells whether a process that uses Stela is ready for requests.
#pragma once

#include <stela/tool/export.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela {
class Store;
struct BrokerStatus;
struct RelayTick;
}  // namespace stela

namespace stela::tool {

struct ReadinessOptions {
  /// How far the outbox and the projectors may lag; unset: any lag. A process that can append is
  /// useful even while the broker is down or a projector is late, so set it only where old data is
  /// worse than none.
  std::optional<std::chrono::milliseconds> max_lag = {};
  /// Other processes ignore a relay of this process that hasn't renewed its heartbeat for this
  /// long.
  std::chrono::milliseconds heartbeat_ttl{20'000};
  /// For a process that is useless without its broker, such as a worker. Other processes stay ready
  /// while it is down: appends continue, and messages stay pending.
  bool needs_broker = false;
  /// Whether the outbox's partitions count. Set it to false if another program relays, and is
  /// monitored itself.
  bool outbox = true;
  /// The projectors and reactions that count, which the database must have; unset: all that it has.
  /// Others in the same database belong to other programs.
  std::optional<std::vector<std::string>> projectors = {};
};

/// Tells why a process isn't ready, from the store's database and from what the process reported
/// about its relays and consumers.
///
///     stela::tool::Readiness readiness{store};
///     relay.on_tick([&](const stela::RelayTick& tick) { readiness.note(tick); });
///     serve("/readyz", [&] { return readiness.problems(); });
///
/// The tool's `/readyz` gives the same reasons; docs/reference/metrics.md says which apply to
/// `outbox work` and to `projections run`.
///
/// Threads: any.
class STELA_TOOL_EXPORT Readiness {
 public:
  /// `store` must outlive it; its handle may be moved. UsageError if `max_lag` is negative, or
  /// `heartbeat_ttl` isn't above 0.
  explicit Readiness(Store& store, const ReadinessOptions& options = {});
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// Call it from the listener of a relay's ticks. A process with several relays names each, for
  /// example by `relay.worker()`; the name then begins their reasons.
  void note(const RelayTick& tick, std::string_view relay = {});
  /// Call it from the listener of a consumer's ticks, with the state of its broker.
  void note(std::string_view consumer, const BrokerStatus& broker);
  /// Reports that something the process needs has ended: it isn't ready any more.
  void fail(std::string_view why);

  /// Empty if the process is ready, else a line for each reason: the database doesn't answer, a
  /// partition of the outbox is stopped, a projector is stopped or missing, a lag is longer than
  /// max_lag, a relay has no heartbeat, a broker is misconfigured. Reads the database; its errors
  /// are reasons.
  std::vector<std::string> problems() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool
