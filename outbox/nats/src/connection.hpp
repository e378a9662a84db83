// A connection and its subscriptions.
#pragma once

#include "handles.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace stela::nats {

class OpenConnection;

/// Ends a subscription; it is freed later.
class Unsubscribe {
 public:
  explicit Unsubscribe(std::shared_ptr<OpenConnection> connection = {}) noexcept
      : connection_{std::move(connection)} {}
  void operator()(natsSubscription* subscription) const noexcept;

 private:
  std::shared_ptr<OpenConnection> connection_;
};

/// Keeps its connection open.
using Subscription = std::unique_ptr<natsSubscription, Unsubscribe>;

/// Before 3.6, nats.c may still be delivering a message to a subscription that another thread
/// frees. Here an ended subscription is freed only after the connection's reading thread has passed
/// that message. Threads: one at a time makes and ends subscriptions.
class Connection {
 public:
  Connection() = default;
  explicit Connection(ConnectionHandle handle);

  /// Null if there is no connection.
  natsConnection* get() const noexcept;
  explicit operator bool() const noexcept { return open_ != nullptr; }
  void reset() noexcept { open_.reset(); }

  /// A subscription that is polled for its messages. Throws BrokerFailed.
  Subscription subscribe(const std::string& subject) const;
  /// Calls `handle` for each message on a thread of nats.c's. Throws BrokerFailed.
  Subscription subscribe(const std::string& subject, natsMsgHandler handle, void* closure) const;

 private:
  std::shared_ptr<OpenConnection> open_;
};

/// How many bytes of messages have arrived since it was opened.
std::uint64_t received_bytes(natsConnection* connection);

}  // namespace stela::nats
