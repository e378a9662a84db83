// Connecting to one server within a time, whatever nats.c does meanwhile.
#pragma once

#include "handles.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace stela::nats {

/// What the callbacks of a connection work on. Once it is connected, its closed callback owns this.
using Closure = std::unique_ptr<void, void (*)(void*)>;

/// One try to connect to one server.
struct Attempt {
  OptionsHandle options;
  Closure closure{nullptr, [](void*) {}};
  std::string host = {};
  int port = 0;
  std::chrono::milliseconds timeout{0};
};

struct Attempted {
  natsStatus status = NATS_TIMEOUT;
  /// For people: what nats.c's status doesn't say.
  std::string detail = {};
  ConnectionHandle connection = {};
};

/// nats.c 3.4 keeps the time-out until the server's first line has come. A server that falls silent
/// after it is polled for minutes, without a pause, by a thread that nothing stops. So a thread of
/// its own connects, and a socket to that server that was opened meanwhile and was silent for
/// `timeout` is shut down, which nats.c takes for the server's; never one of a connection that was
/// made here. A thread that hangs all the same is left behind after twice the `timeout`; what it
/// holds goes when it ends. BrokerFailed if the process can have no more threads.
Attempted try_to_connect(Attempt attempt);

}  // namespace stela::nats
