// The durable consumer at the broker: what it is, and what it has to be.
#pragma once

#include "handles.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// What the broker says of a consumer. Members are as the broker has them, with its names.
struct Durable {
  std::string ack_policy = {};
  std::string deliver_policy = {};
  std::string replay_policy = {};
  std::string deliver_subject = {};
  std::string priority_policy = {};
  /// One at most from servers before 2.10.
  std::vector<std::string> filter_subjects = {};
  std::chrono::nanoseconds ack_wait{0};
  std::chrono::nanoseconds max_expires{0};
  std::chrono::nanoseconds inactive_threshold{0};
  std::int64_t max_deliver = -1;
  std::int64_t max_ack_pending = 0;
  std::int64_t max_batch = 0;
  std::int64_t max_bytes = 0;
  std::int64_t replicas = 0;
  bool has_backoff = false;
  bool headers_only = false;
  bool is_in_memory = false;
  /// Servers from 2.11 on: until when, if it is paused now.
  std::string pause_until = {};
  bool is_paused = false;

  /// Where it began, if deliver_policy is by_start_sequence.
  std::uint64_t start_sequence = 0;

  /// Places in the stream: what was delivered last, and up to where everything is acknowledged.
  std::int64_t delivered = 0;
  std::int64_t ack_floor = 0;
  std::int64_t ack_pending = 0;
  /// How many messages weren't delivered yet.
  std::int64_t undelivered = 0;

  /// Nothing up to this place is on its way: it is acknowledged, or gone.
  std::uint64_t settled_through() const noexcept {
    return static_cast<std::uint64_t>(ack_pending == 0 ? delivered : ack_floor);
  }
};

/// How far a consumer is done with a stream, and what tells that from another of its name: when the
/// broker made it, in nanoseconds.
struct Settled {
  std::int64_t stream_made_at = 0;
  std::uint64_t through = 0;

  friend bool operator==(const Settled&, const Settled&) = default;
};

/// As it is in the broker's answer: nats.c's structure lacks what newer servers have. BrokerFailed
/// if the answer says that something went wrong or can't be read, nothing if there is no such
/// consumer.
std::optional<Durable> read_durable(std::string_view answer, const std::string& doing);

/// Asks the broker, and waits for so long; BrokerSilent after that.
std::optional<Durable> find_durable(natsConnection* connection, const ConsumerOptions& options,
                                    std::chrono::milliseconds patience);

/// Behind `settled_through`, if that isn't 0. BrokerFailed if the broker doesn't make it.
void make_durable(jsCtx* context, const ConsumerOptions& options, std::uint64_t settled_through);

/// What a pull request of ours asks for at most.
struct PullLimits {
  int batch = 0;
  std::int64_t bytes = 0;
  std::chrono::milliseconds expires{0};
};

/// What is known of the stream: a consumer may begin behind what is settled.
struct StreamFacts {
  std::int64_t replicas = 1;
  std::uint64_t settled_through = 0;
};

/// UsageError if messages could be lost, come incomplete or never come: it says each setting that
/// is wrong, what it should be, and how to change it.
void check_durable(const Durable& durable, const ConsumerOptions& options, const PullLimits& limits,
                   const StreamFacts& stream);

}  // namespace stela::nats
