// A relay's options. docs/relay.md uses the same names and defaults.
#pragma once

#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela {

/// What happens with a message that the broker will never accept.
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
  /// The limit for payload bytes in flight, for all partitions of a worker. A worker at the limit
  /// sends nothing more. One message may exceed what is left. If answers come slowly it sends less
  /// at a time.
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

}  // namespace stela
