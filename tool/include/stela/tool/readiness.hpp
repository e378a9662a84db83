// Whether a process that uses Stela is ready for requests.
#pragma once

#include <stela/tool/export.hpp>

#include <chrono>
#include <memory>
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
  /// How far the outbox and the projectors may be behind.
  std::chrono::milliseconds max_lag{60'000};
  /// A relay of this process that can't renew its heartbeat for so long isn't counted by others.
  std::chrono::milliseconds heartbeat_ttl{20'000};
  /// For a process that is of no use without its broker, as a worker is. Others stay ready while it
  /// is down: appends continue, and messages stay pending.
  bool needs_broker = false;
};

/// Why a process isn't ready: what the database of its store says, and what the process told of its
/// relay and its consumers. `outbox work --metrics` answers /readyz by the same rules.
///
///     stela::tool::Readiness readiness{store};
///     relay.on_tick([&](const stela::RelayTick& tick) { readiness.note(tick); });
///     serve("/readyz", [&] { return readiness.problems(); });
///
/// Threads: any.
class STELA_TOOL_EXPORT Readiness {
 public:
  /// `store` must outlive it; its handle may be moved.
  explicit Readiness(Store& store, const ReadinessOptions& options = {});
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// For the listener of the relay's ticks.
  void note(const RelayTick& tick);
  /// For the listener of a consumer's ticks, with the state of its broker.
  void note(std::string_view consumer, const BrokerStatus& broker);
  /// Something that this process needs has ended: it isn't ready any more.
  void fail(std::string_view why);

  /// Empty if the process is ready, else a line for each reason: the database doesn't answer, a
  /// partition of the outbox is stopped, a projector is halted, a lag is too long, the relay has no
  /// heartbeat, a broker is misconfigured. Reads the database; its errors are reasons.
  std::vector<std::string> problems() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool
