// A TCP proxy that imitates a bad network.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stela::test {

/// Listens on loopback between clients and one server, or several servers of one cluster: a new
/// connection goes to the next one that accepts it. Threads: any; it has one of its own.
class TcpProxy {
 public:
  /// `requests` go to the server, `answers` to its clients.
  enum class Direction : std::uint8_t { requests, answers };

  explicit TcpProxy(int server_port) : TcpProxy{std::vector{server_port}} {}
  explicit TcpProxy(std::vector<int> server_ports);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const noexcept { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  // Data from now on.

  /// Delays data, in this direction or in both.
  void delay(Direction direction, std::chrono::milliseconds by);
  void delay(std::chrono::milliseconds by);
  /// Limits the bytes per second, in this direction or in each; 0: no limit.
  void limit(Direction direction, int bytes_per_second);
  void limit(int bytes_per_second);
  /// Passes data in pieces of this many bytes, but the end of the first line in one; 0: unchanged.
  void slice(int bytes) { slice_ = bytes; }

  // Existing connections. Neither side is told.

  /// Accepts and loses everything sent in this direction from now on.
  void lose(Direction direction) { request({.kind = Order::Kind::lose, .direction = direction}); }
  /// Loses everything in both directions.
  void half_open();
  /// Stops accepting data in this direction until `release`.
  void hold(Direction direction) { request({.kind = Order::Kind::hold, .direction = direction}); }
  void release() { request({.kind = Order::Kind::release}); }
  /// Delays what clients send, even after they have left. New connections aren't delayed.
  void linger(std::chrono::milliseconds by) { request({.kind = Order::Kind::linger, .late = by}); }
  /// Ends them.
  void cut() { request({.kind = Order::Kind::cut}); }

  // New connections.

  /// Refuses or accepts them.
  void refuse(bool refuses) { refuses_ = refuses; }
  /// Passes only the server's first line.
  void fall_silent(bool silent) { silent_ = silent; }

  /// Restores the initial state: held data passes at once, and connections that lost data are
  /// ended.
  void heal();

 private:
  struct Order {
    enum class Kind : std::uint8_t { lose, hold, release, linger, cut, heal };
    Kind kind = Kind::heal;
    Direction direction = Direction::requests;
    std::chrono::milliseconds late{0};
  };
  /// The state of one direction.
  struct Link {
    std::atomic<int> delay_ms{0};
    std::atomic<int> bytes_per_second{0};
  };
  struct Connection;
  struct Stream;

  /// Returns when the order has been carried out.
  void request(const Order& order);
  void carry_out(const Order& order);
  void run();
  void carry_out_orders();
  void take_connection();
  int connect_to_a_server();
  void pump(Connection& connection);
  void read_from(Stream& stream);
  void take(Stream& stream, std::string bytes);
  void write_due(Stream& stream);

  const std::vector<int> server_ports_;
  std::size_t next_server_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  int port_ = 0;
  std::array<Link, 2> links_;
  std::atomic<int> slice_{0};
  std::atomic<bool> refuses_{false};
  std::atomic<bool> silent_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable carried_out_;
  // Guarded by mutex_.
  std::vector<Order> orders_;
  std::uint64_t ordered_ = 0;
  std::uint64_t done_ = 0;

  std::vector<std::unique_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace stela::test
