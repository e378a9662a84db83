// Messages to a subject, as they come.
#pragma once

#include "connection.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace stela::nats {

/// Keeps what comes until it is asked for. nats.c's own queue gives no message without a payload
/// whose status is 503: it takes it for the server's word that nobody responds, and a message of a
/// stream may look like that.
/// Threads: one at a time; a thread of nats.c's fills it.
class Incoming {
 public:
  /// BrokerFailed. Nothing that comes is dropped, so what is asked for must be bounded.
  Incoming(const Connection& connection, const std::string& subject);

  /// Null if none comes in time. BrokerFailed if none can come any more.
  MessageHandle next(std::chrono::milliseconds wait);
  /// Nothing is here, nor on its way between nats.c's threads.
  bool is_empty() const;

 private:
  struct Queue;
  using Hold = std::shared_ptr<Queue>;

  static void take(natsConnection*, natsSubscription*, natsMsg* raw, void* hold);
  static void end(void* hold);

  const Hold queue_;
  Subscription subscription_;
  /// nats.c counts in 32 bits what it has delivered.
  std::uint32_t taken_ = 0;
};

}  // namespace stela::nats
