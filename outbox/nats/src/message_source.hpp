// A consumer's ports besides its database: a stream of messages, time and randomness.
#pragma once

#include "delivery.hpp"

#include <stela/framework/uuid.hpp>
#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela::nats {

/// A stream's ends, as its leader knows them.
struct StreamEnds {
  /// By the broker's clock, in nanoseconds; distinguishes it from another stream with its name.
  std::int64_t made_at = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// The broker has forgotten its consumer, perhaps with the stream, which may have been recreated.
/// The source can be positioned again.
struct SourceForgotten {};

/// One connection to a stream. A broken one isn't repaired: after BrokerFailed make a new source.
/// Threads: one at a time.
class MessageSource {
 public:
  virtual ~MessageSource() = default;

  /// The stream's present ends.
  virtual StreamEnds look() = 0;
  /// When the broker stored the message at this place, in nanoseconds; unset if it is missing.
  virtual std::optional<std::int64_t> time_of(std::uint64_t sequence) = 0;
  /// The end of this or another stream; 0 if there is no such stream. BrokerFailed if the broker
  /// doesn't say.
  virtual std::uint64_t last_of(const std::string& stream) = 0;
  /// The first message after this place of a stream that passes the filter; unset if there is none.
  /// BrokerFailed as above.
  virtual std::optional<std::uint64_t> next_after(const std::string& stream,
                                                  const std::string& filter,
                                                  std::uint64_t position) = 0;

  /// Reads on after this place.
  virtual void stand_at(std::uint64_t position) = 0;
  /// Waits for the first message only, then returns it and what else is available, in order. Only
  /// messages that the stream no longer has may be missing in between. Empty if nothing came.
  /// SourceForgotten.
  virtual std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait) = 0;

  /// Misconfigured if the server has denied a required permission, which ends the connection.
  virtual void fail_if_denied() const = 0;
};

struct ConsumerPorts {
  /// Throws like StreamSource's constructor.
  std::function<std::unique_ptr<MessageSource>(const ConsumerOptions&)> connect;
  /// Returns early if a stop is requested.
  std::function<void(const std::stop_token&, std::chrono::milliseconds)> rest;
  /// Spreads retries.
  Random& random = system_random();
};

}  // namespace stela::nats
