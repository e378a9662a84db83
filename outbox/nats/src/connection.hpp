// A connection and the subscriptions that are made on it.
#pragma once

#include "handles.hpp"

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

/// nats.c before 3.6 may be about to put a message into a subscription that another thread frees.
/// Here one that has ended is freed when the thread that reads from the connection is past that
/// message. Threads: one at a time makes subscriptions, and ends them.
class Connection {
 public:
  Connection() = default;
  explicit Connection(ConnectionHandle handle);

  /// Null if there is none.
  natsConnection* get() const noexcept;
  explicit operator bool() const noexcept { return open_ != nullptr; }
  void reset() noexcept { open_.reset(); }

  /// To be asked for what comes. BrokerFailed.
  Subscription subscribe(const std::string& subject) const;
  /// Calls `handle` for what comes, on a thread of nats.c's. BrokerFailed.
  Subscription subscribe(const std::string& subject, natsMsgHandler handle, void* closure) const;

 private:
  std::shared_ptr<OpenConnection> open_;
};

}  // namespace stela::nats
