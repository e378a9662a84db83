// Connects to one server within a time limit, whatever nats.c does meanwhile.
#pragma once

#include "handles.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace stela::nats {

/// The state that a connection's callbacks use. Its closed callback owns it once connected.
using Closure = std::unique_ptr<void, void (*)(void*)>;

/// One attempt to connect to one server.
struct Attempt {
  OptionsHandle options;
  Closure closure{nullptr, [](void*) {}};
  std::string host = {};
  int port = 0;
  std::chrono::milliseconds timeout{0};
};

struct Attempted {
  natsStatus status = NATS_TIMEOUT;
  /// Details for people that nats.c's status lacks.
  std::string detail = {};
  ConnectionHandle connection = {};
};

/// nats.c 3.4 applies its time-out only until the server's first line arrives. If the server then
/// falls silent, nats.c polls it for minutes in a thread that can't be stopped. So a separate
/// thread connects. A socket to that server that was opened meanwhile and has been silent for
/// `timeout` is assumed to be the attempt's and is shut down, unless it belongs to a connection
/// made here. A thread that still hangs is abandoned after twice the `timeout`; it frees its
/// resources when it ends. BrokerFailed if the process can have no more threads.
Attempted try_to_connect(Attempt attempt);

}  // namespace stela::nats
