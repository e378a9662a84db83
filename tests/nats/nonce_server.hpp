// A NATS server that wants a signature of nonces that a test has chosen.
#pragma once

#include "support/loopback_listener.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace stela::test {

/// Listens on loopback. Takes whoever sends a signature, whatever it is of.
/// Threads: any; it has one of its own.
class NonceServer {
 public:
  /// One for each connection; the last one for those after it.
  explicit NonceServer(std::vector<std::string> nonces);
  ~NonceServer();
  NonceServer(const NonceServer&) = delete;
  NonceServer& operator=(const NonceServer&) = delete;

  std::string url() const { return "nats://127.0.0.1:" + std::to_string(listener_.port()); }

 private:
  void run();
  bool welcome(int client, const std::string& nonce);

  const std::vector<std::string> nonces_;
  const LoopbackListener listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace stela::test
