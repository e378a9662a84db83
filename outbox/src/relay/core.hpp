// State shared by the parts of the relay's core. The core starts no thread, doesn't sleep, reads no
// clock and opens no socket of its own: time, randomness, store and broker are passed in.
#pragma once

#include "follow/backoff.hpp"
#include "relay/outbox_port.hpp"

#include <stela/framework/clock.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela::relay {

using Steady = std::chrono::steady_clock::time_point;
inline constexpr Steady never = Steady::max();

inline follow::Backoff backoff_of(const RelayOptions& options) {
  return {options.retry_backoff, options.retry_backoff_max, options.retry_jitter};
}
/// The longest back-off.
inline std::chrono::microseconds longest_backoff(const RelayOptions& options) {
  return backoff_of(options).longest();
}

/// Events counted since the worker began.
struct Counts {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  std::int64_t retried = 0;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
  std::int64_t fenced = 0;
  std::int64_t read_backs = 0;
  std::int64_t leased = 0;
  std::int64_t released = 0;
  std::int64_t purged_workers = 0;
  std::int64_t heartbeats = 0;
};

/// Something of interest to an operator.
struct Incident {
  enum class Kind : std::uint8_t {
    publish_failed,
    parked,
    skipped,
    stopped,
    fenced,
    broker_down,
    broker_back,
    misconfigured,
    store_trouble,
  };
  Kind kind = Kind::publish_failed;
  PartitionId partition = {};
  GlobalSequence sequence = {};
  std::string text = {};
  /// For the store's trouble: waiting can't end it, as when rights are missing.
  bool is_lasting = false;
};

std::string_view to_string(Incident::Kind kind) noexcept;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_incident(const Incident& incident) = 0;
};

/// The state that all parts of a worker's core share.
struct Core {
  const RelayOptions& options;
  Fence fence;
  std::string_view worker;
  /// The store's id, for the headers of its messages.
  std::string store_id;
  OutboxPort& store;
  Publisher& publisher;
  const Clock& clock;
  Random& random;
  Observer& observer;

  Counts counts = {};
  /// The open session; 0 if there is none.
  std::uint64_t session = 0;
  /// The publisher refused a call: the worker must open another session.
  bool session_failed = false;
  /// A lane misses an answer: the worker must ask whether the session is alive.
  bool session_doubted = false;
  /// Lanes waiting for a read-back.
  int reading = 0;
  /// Payload bytes of all lanes, in flight or in memory before sending; and a lane's share.
  std::int64_t bytes = 0;
  std::int64_t share_of_bytes = 0;
  /// Sending pauses at this time, until leases and answers have been attended to.
  Steady step_end = never;
  std::uint64_t last_request = 0;

  /// A request's name is a growing number, whose low bits are the partition.
  static constexpr int partition_bits = 16;
  std::uint64_t name_request(PartitionId partition) noexcept {
    return ++last_request << partition_bits | static_cast<std::uint64_t>(partition.number);
  }
  static PartitionId partition_of(std::uint64_t request) noexcept {
    return {static_cast<int>(request & ((std::uint64_t{1} << partition_bits) - 1))};
  }

  Steady now() const { return clock.steady_now(); }
  bool is_full() const noexcept { return bytes >= options.max_in_flight_bytes; }
  /// How many bytes a lane that has `mine` may add, if there is room: the rest of its share, or
  /// until it holds as much as it leaves for others.
  std::int64_t room_for(std::int64_t mine) const noexcept {
    const std::int64_t left = options.max_in_flight_bytes - bytes;
    return std::min(std::max(share_of_bytes - mine, (left - mine) / 2), left);
  }
  void report(Incident::Kind kind, PartitionId partition, GlobalSequence sequence,
              std::string text) {
    observer.on_incident({kind, partition, sequence, std::move(text)});
  }
  void report_trouble(PartitionId partition, const Error& error) {
    observer.on_incident({.kind = Incident::Kind::store_trouble,
                          .partition = partition,
                          .text = error.what(),
                          .is_lasting = error.code() == ErrorCode::store_failed});
  }
};

}  // namespace stela::relay
