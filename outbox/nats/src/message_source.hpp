// What a consumer works with besides its database: a stream of messages, time and chance.
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

/// A stream as its leader has it.
struct StreamEnds {
  /// By the broker's clock, in nanoseconds: tells it from another stream of its name.
  std::int64_t made_at = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// The broker has forgotten who reads: perhaps with the stream, which may have been made again. The
/// source can stand at a place again.
struct SourceForgotten {};

/// One connection to a stream. It isn't mended: after BrokerFailed a new source is made.
/// Threads: one at a time.
class MessageSource {
 public:
  virtual ~MessageSource() = default;

  /// As it is now.
  virtual StreamEnds look() = 0;
  /// When the broker stored the message at this place, in nanoseconds; unset if it isn't there.
  virtual std::optional<std::int64_t> time_of(std::uint64_t sequence) = 0;
  /// Where a stream ends, also another one; 0 if there is none. BrokerFailed if the broker doesn't
  /// say.
  virtual std::uint64_t last_of(const std::string& stream) = 0;
  /// The first message after this place of a stream that the filter lets through; unset if there is
  /// none. BrokerFailed as above.
  virtual std::optional<std::uint64_t> next_after(const std::string& stream,
                                                  const std::string& filter,
                                                  std::uint64_t position) = 0;

  /// Reads on behind this place.
  virtual void stand_at(std::uint64_t position) = 0;
  /// Waits for the first message at most; then what else is there, in order and without a hole but
  /// for what isn't in the stream any more. Empty if nothing came. SourceForgotten.
  virtual std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait) = 0;

  /// Misconfigured if the server has denied what is needed, which has ended the connection.
  virtual void fail_if_denied() const = 0;
};

struct ConsumerPorts {
  /// Throws as the constructor of StreamSource.
  std::function<std::unique_ptr<MessageSource>(const ConsumerOptions&)> connect;
  /// Returns early if a stop is requested.
  std::function<void(const std::stop_token&, std::chrono::milliseconds)> rest;
  /// Spreads retries.
  Random& random = system_random();
};

}  // namespace stela::nats
