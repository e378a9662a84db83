// Publishes what waits in the outbox: each event once and in order.
#pragma once

#include <stela/outbox/export.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay_options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace stela {

/// What a relay did since it last said so, and how it stands.
struct RelayTick {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  /// Tried without success, and waiting to be tried again.
  std::int64_t retried = 0;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
  /// Changes that were refused because another worker has the partition now.
  std::int64_t fenced = 0;
  /// How often the relay asked the broker what stands there.
  std::int64_t read_backs = 0;
  /// How long it worked, waits for the broker's answers included.
  std::chrono::microseconds duration{0};
  /// How long it is going to wait for something to do.
  std::chrono::microseconds backoff{0};
  bool renewed_heartbeat = false;
  /// What was older than `retention` in the logs.
  std::int64_t purged = 0;
  /// Workers that have been silent for long.
  std::int64_t purged_stale = 0;
  std::int64_t active_workers = 0;
  std::int64_t desired_count = 0;
  std::int64_t owned_count = 0;
  std::int64_t leased_count = 0;
  std::int64_t released_count = 0;
  /// "connected", "connecting", "down: …" or "misconfigured: …".
  std::string broker = {};

  std::int64_t failed() const noexcept { return retried + parked; }
};

/// A worker: takes its share of the partitions, publishes what waits in them, and hands them over
/// when it stops. Any number of them, in any number of processes, share one outbox. `tick` and
/// `run` wait out trouble with the store and the broker, but throw SchemaMismatch once a newer
/// Stela has migrated the database and shut out this one: its leases run out, and a newer relay
/// takes over. They throw UsageError if another relay works under this one's name, in this process
/// or another: the first heartbeat takes the name, before any partition is taken, and each later
/// one looks at it again. A name is free once its relay has been silent for `heartbeat_ttl`, and at
/// once if that has ended, however it ended: a relay that lives has a byte of the database's lock
/// file locked, which is seen from every container.
/// Threads: one at a time. It starts no thread; the publisher may have some.
class STELA_OUTBOX_EXPORT Relay {
 public:
  /// UsageError if the options contradict each other or the database, or the publisher can't keep
  /// its fence. `outbox` and `publisher` must outlive the relay. It uses the publisher from its
  /// first `tick` or `run` on until `run` returns or it is destroyed; another relay that begins
  /// meanwhile gets a UsageError.
  Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options = {});
  /// Hands over what it holds, unless something is in flight: then the leases have to run out. Ends
  /// its session of the publisher in any case.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Publishes what waits now, and returns when nothing more can be done at once.
  RelayTick tick();

  /// Relays until `stop` is requested; then waits for what is in flight, and hands everything over.
  /// A commit of this process wakes it at once, one of another process within milliseconds.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, after whatever it did and at least once in each idle_backoff.
  /// What it throws, `run` throws; the relay may be run again, or destroyed.
  void on_tick(std::function<void(const RelayTick&)> listener);

  /// The name under which it holds partitions.
  const std::string& worker() const noexcept;

 private:
  class Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace stela
