// A NATS server that falls silent while a client connects.
#pragma once

#include "support/loopback_listener.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

namespace stela::test {

/// Listens on loopback. It keeps its connections, and says nothing beyond what is asked for.
/// Threads: any; it has one of its own.
class SilentServer {
 public:
  enum class After : std::uint8_t {
    /// The connection is made.
    accept,
    /// It has said who it is.
    info,
    /// It has read who the client is, and its PING.
    ping,
  };

  /// Those that connect after the first `silent` ones are answered.
  explicit SilentServer(After after, int silent = std::numeric_limits<int>::max());
  ~SilentServer();
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port()); }
  int port() const noexcept { return listener_.port(); }
  /// How many connections were made.
  int connections() const noexcept { return connections_; }

 private:
  void run();

  const After after_;
  const int silent_;
  const LoopbackListener listener_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace stela::test
