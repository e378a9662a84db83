// What the parts of the relay's core share. Nothing here starts a thread, sleeps, reads a clock of
// its own or opens a socket: time, randomness, store and broker are handed in.
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
/// The longest wait that it gives.
inline std::chrono::microseconds longest_backoff(const RelayOptions& options) {
  return backoff_of(options).longest();
}

/// What happened, counted since the worker began.
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

/// Something that an operator may want to know.
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
  /// Of the store's trouble: no waiting ends it, as where rights are missing.
  bool is_lasting = false;
};

std::string_view to_string(Incident::Kind kind) noexcept;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_incident(const Incident& incident) = 0;
};

/// What every part of a worker's core works with.
struct Core {
  const RelayOptions& options;
  Fence fence;
  std::string_view worker;
  /// What the store is, in the headers of its messages.
  std::string store_id;
  OutboxPort& store;
  Publisher& publisher;
  const Clock& clock;
  Random& random;
  Observer& observer;

  Counts counts = {};
  /// The open session, 0 if there is none.
  std::uint64_t session = 0;
  /// The publisher refused a call: the worker has to open another session.
  bool session_failed = false;
  /// A lane misses an answer: the worker has to ask whether the session lives.
  bool session_doubted = false;
  /// Lanes that wait for a read-back.
  int reading = 0;
  /// Payload that is in flight, or in memory on its way there, of all lanes; and a lane's share.
  std::int64_t bytes = 0;
  std::int64_t share_of_bytes = 0;
  /// What is being sent waits from then on until leases and answers were looked after.
  Steady step_end = never;
  std::uint64_t last_request = 0;

  /// A request is named by a number that grows; its low bits say for which partition it is.
  static constexpr int partition_bits = 16;
  std::uint64_t name_request(PartitionId partition) noexcept {
    return ++last_request << partition_bits | static_cast<std::uint64_t>(partition.number);
  }
  static PartitionId partition_of(std::uint64_t request) noexcept {
    return {static_cast<int>(request & ((std::uint64_t{1} << partition_bits) - 1))};
  }

  Steady now() const { return clock.steady_now(); }
  bool is_full() const noexcept { return bytes >= options.max_in_flight_bytes; }
  /// How many bytes a lane that has `mine` may add, as long as there is room: the rest of its
  /// share, or until it has as much as it leaves for others.
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
