// How a relay works: names and defaults as in docs/relay.md.
#pragma once

#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela {

/// What becomes of a message that the broker will never take.
enum class OnPoison : std::uint8_t {
  /// It is parked, and with it what comes later in its stream; the rest goes on.
  park,
  /// Its partition waits until an operator retries or discards it.
  halt,
  /// It is discarded, and that is recorded.
  skip,
};

STELA_OUTBOX_EXPORT std::string_view to_string(OnPoison on_poison) noexcept;

struct RelayOptions {
  /// The worker's name; empty makes one of host, process and a random part.
  std::string worker = {};

  /// A worker that was silent for this long has lost its partitions.
  std::chrono::milliseconds lease_ttl{15'000};
  /// How often leases are renewed.
  std::chrono::milliseconds lease_renew{6'000};
  /// A worker that was silent for this long isn't counted any more.
  std::chrono::milliseconds heartbeat_ttl{20'000};

  /// How many messages are fetched, noted and marked at once.
  int batch_size = 500;
  /// How many messages of a partition are in flight at most, in mode `stream` and, over all of its
  /// streams, in mode `none`.
  int window = 2'000;
  /// A worker that has so many bytes of payload in flight, in all its partitions, sends nothing
  /// more; a single message may exceed what is left. Where answers come slowly it sends less at a
  /// time.
  std::int64_t max_in_flight_bytes = 32 * 1024 * 1024;
  /// How long to wait before looking again when there was nothing and nobody woke the relay.
  std::chrono::milliseconds idle_backoff{1'000};
  /// Without leasing: how long a claimed message is kept from other workers.
  std::chrono::milliseconds claim_ttl{15'000};

  /// How long to wait for the broker's answer before reading back what became of a message.
  std::chrono::milliseconds publish_timeout{5'000};
  /// The first wait after trouble, doubled each time up to the maximum, give or take the jitter.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
  double retry_jitter = 0.25;
  /// How often a message is tried when its failures are its own fault.
  int max_attempts = 5;
  OnPoison on_poison = OnPoison::park;

  /// How long the log of batches, operators' actions and discarded messages are kept.
  std::chrono::hours retention{168};
};

/// UsageError if a value is out of range or contradicts another, naming both and the reason.
STELA_OUTBOX_EXPORT void check(const RelayOptions& options, Fence fence, bool leasing);

}  // namespace stela
