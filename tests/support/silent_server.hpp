// A NATS server that falls silent while a client connects.
#pragma once

#include "support/loopback_listener.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

namespace stela::test {

/// Listens on loopback. Keeps its connections, and sends nothing after the given point. Threads:
/// any; it has one of its own.
class SilentServer {
 public:
  enum class After : std::uint8_t {
    /// After the connection is made.
    accept,
    /// After its INFO.
    info,
    /// After it has read the client's CONNECT and PING.
    ping,
  };

  /// Answers clients that connect after the first `silent` ones.
  explicit SilentServer(After after, int silent = std::numeric_limits<int>::max());
  ~SilentServer();
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port()); }
  int port() const noexcept { return listener_.port(); }
  /// The number of connections made so far.
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
