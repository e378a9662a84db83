// Notifies systemd: readiness, the end, and signs of life.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace stela::tool {

/// Does nothing if systemd didn't start this process. Threads: one at a time.
class ServiceManager {
 public:
  /// Reads NOTIFY_SOCKET and WATCHDOG_USEC.
  ServiceManager();

  void ready() { send_once(is_ready_, "READY=1"); }
  void stopping() { send_once(is_stopping_, "STOPPING=1"); }
  /// Sends a sign of life, no more often than the watchdog needs.
  void alive(std::chrono::steady_clock::time_point now);

 private:
  void send_once(bool& sent, std::string_view text);
  void send(std::string_view text) const noexcept;

  std::string socket_;
  std::chrono::microseconds watchdog_{0};
  std::chrono::steady_clock::time_point last_sign_{};
  bool is_ready_ = false;
  bool is_stopping_ = false;
};

}  // namespace stela::tool
