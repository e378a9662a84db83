// A queue of the messages to a subject.
#pragma once

#include "connection.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace stela::nats {

/// Keeps messages until they are asked for. nats.c's own queue drops a message without a payload
/// and with status 503, taking it for the server's "no responders", but a stream's message may look
/// like that. Threads: one at a time; a thread of nats.c's fills it.
class Incoming {
 public:
  /// Throws BrokerFailed. No message is dropped, so requests must be bounded.
  Incoming(const Connection& connection, const std::string& subject);

  /// Null if none arrives in time. BrokerFailed if no more can arrive.
  MessageHandle next(std::chrono::milliseconds wait);
  /// True if no message is here or on its way between nats.c's threads.
  bool is_empty() const;

 private:
  struct Queue;
  using Hold = std::shared_ptr<Queue>;

  static void take(natsConnection*, natsSubscription*, natsMsg* raw, void* hold);
  static void end(void* hold);

  const Hold queue_;
  Subscription subscription_;
  /// 32 bits, like nats.c's count of delivered messages.
  std::uint32_t taken_ = 0;
};

}  // namespace stela::nats
