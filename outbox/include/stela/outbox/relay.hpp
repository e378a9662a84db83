// The relay: publishes pending messages, each event once and in order.
#pragma once

#include <stela/outbox/export.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/states.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace stela {

/// What happens to a message that the broker will never accept.
enum class OnPoison : std::uint8_t {
  /// Park it, and later messages of its stream with it. Other streams continue.
  park,
  /// Stop its partition until an operator retries or discards the message.
  stop,
  /// Discard it, and record that.
  skip,
};

STELA_OUTBOX_EXPORT std::string_view to_string(OnPoison on_poison) noexcept;

struct RelayOptions {
  /// The worker's name. Empty: made of host, process and a random part.
  std::string worker = {};

  /// A worker that doesn't renew its leases for this long loses its partitions.
  std::chrono::milliseconds lease_ttl{15'000};
  /// How often leases are renewed.
  std::chrono::milliseconds lease_renew{6'000};
  /// A worker without a heartbeat for this long no longer counts.
  std::chrono::milliseconds heartbeat_ttl{20'000};

  /// How many messages are fetched, recorded and marked at a time.
  int batch_size = 500;
  /// The highest number of messages of a partition in flight.
  int window = 2'000;
  /// The most payload bytes in flight, over all partitions of a worker. A worker at the limit sends
  /// nothing more. One message may exceed the rest of it. A worker sends less at a time while
  /// answers are slow.
  std::int64_t max_in_flight_bytes = 32 * 1024 * 1024;
  /// How long an idle relay waits before it looks again, unless a commit wakes it.
  std::chrono::milliseconds idle_backoff{1'000};

  /// How long to wait for the broker's answer before reading back what became of a message.
  std::chrono::milliseconds publish_timeout{5'000};
  /// The first wait after a failure. It doubles each time up to the maximum, plus or minus the
  /// jitter.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
  double retry_jitter = 0.25;
  /// How often a message is tried, if the failures are due to the message itself.
  int max_attempts = 5;
  OnPoison on_poison = OnPoison::park;

  /// How long the log of batches, operators' actions and discarded messages are kept.
  std::chrono::hours retention{168};
};

/// UsageError if a value is out of range or contradicts another. The error names both, and why.
STELA_OUTBOX_EXPORT void check(const RelayOptions& options);

/// What a relay did since its last report, and its state.
struct RelayTick {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  /// Failed, and will be tried again.
  std::int64_t retried = 0;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
  /// Changes that were refused because another worker holds the partition now.
  std::int64_t fenced = 0;
  /// How often the relay asked the broker which messages it has.
  std::int64_t read_backs = 0;
  /// How long it worked, including waits for the broker's answers.
  std::chrono::microseconds duration{0};
  /// How long it will wait unless there is something to do.
  std::chrono::microseconds backoff{0};
  bool renewed_heartbeat = false;
  /// Entries of the logs that were older than `retention`.
  std::int64_t purged = 0;
  /// Rows of workers that have been silent for a long time.
  std::int64_t purged_stale = 0;
  std::int64_t active_workers = 0;
  std::int64_t desired_count = 0;
  std::int64_t owned_count = 0;
  std::int64_t leased_count = 0;
  std::int64_t released_count = 0;
  BrokerStatus broker = {};
  /// The store's last refusal that waiting can't end, such as missing rights; empty if none.
  std::string store_refusal = {};

  std::int64_t failed() const noexcept { return retried + parked; }
};

/// A relay worker. It takes its share of the partitions, publishes their pending messages, and
/// hands the partitions over when it stops. Any number of workers in any number of processes share
/// one outbox.
///
/// `run_once` and `run` wait out problems of the store and the broker. They throw SchemaMismatch
/// when a newer Stela has migrated the database and excluded this version. The worker's leases then
/// run out, and a newer relay takes over. They throw UsageError if another relay, in this or
/// another process, works under the same name: the first heartbeat claims the name before any
/// partition is taken, and later ones check it again. A name becomes free at once when its relay
/// ends, however it ends, or after `heartbeat_ttl` of silence. (A living relay locks a byte of the
/// database's lock file, which other containers can see.)
///
/// Threads: one at a time. It starts no thread; the publisher may have some.
class STELA_OUTBOX_EXPORT Relay {
 public:
  /// UsageError if the options contradict each other or the database, or if the publisher can't
  /// provide the fence. `outbox` and `publisher` must outlive the relay. The relay uses the
  /// publisher from its first `run_once` or `run` until `run` returns or it is destroyed. Another
  /// relay that starts with the same publisher meanwhile gets a UsageError.
  Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options = {});
  /// Hands its partitions over, unless messages are in flight: then the leases must run out first.
  /// Ends its session of the publisher in any case.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Publishes the messages that are pending now. Returns when nothing more can be done at once.
  RelayTick run_once();

  /// Relays until `stop` is requested. Then it waits for messages in flight and hands its
  /// partitions over. A commit of this process wakes it at once, a commit of another process within
  /// milliseconds.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, after each pass that did something, and at least once in each
  /// idle_backoff. `run` throws what the listener throws; the relay may be run again or destroyed.
  void on_tick(std::function<void(const RelayTick&)> listener);

  /// The name under which it holds leases.
  const std::string& worker() const noexcept;

 private:
  class Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace stela
