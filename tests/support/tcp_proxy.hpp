// A TCP proxy that does to connections what networks do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stela::test {

/// Stands on loopback between clients and one server.
/// Threads: any; it has one of its own.
class TcpProxy {
 public:
  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const noexcept { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  /// What passes from now on, in both directions, is held for so long.
  void delay(std::chrono::milliseconds by) { delay_ms_ = static_cast<int>(by.count()); }
  /// What passes from now on goes in pieces of so many bytes; 0: as it comes.
  void slice(int bytes) { slice_ = bytes; }
  /// Nothing passes through the connections that there are, and nobody is told.
  void half_open() { request(Order::half_open); }
  /// What clients send passes; what the server answers on the connections that there are doesn't.
  void drop_answers() { request(Order::drop_answers); }
  /// What clients send on the connections that there are arrives so much later, also when they have
  /// long gone; new connections are as fast as ever.
  void linger(std::chrono::milliseconds by) {
    linger_ms_ = static_cast<int>(by.count());
    request(Order::linger);
  }
  /// Ends the connections that there are.
  void cut() { request(Order::cut); }
  /// New connections are refused, or taken again.
  void refuse(bool refuses) { refuses_ = refuses; }
  /// No delay, no slices, and connections that nothing passes through are ended.
  void heal();

 private:
  enum class Order { half_open, drop_answers, linger, cut, heal };
  struct Connection;
  struct Stream;

  void request(Order order);
  void run();
  void carry_out_orders();
  void take_connection();
  void pump(Connection& connection);
  void write_due(Stream& stream);

  const int server_port_;
  int listener_ = -1;
  int wake_ = -1;
  int port_ = 0;
  std::atomic<int> delay_ms_{0};
  std::atomic<int> linger_ms_{0};
  std::atomic<int> slice_{0};
  std::atomic<bool> refuses_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  /// Guarded by mutex_.
  std::vector<Order> orders_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace stela::test
