// A TCP proxy that does to connections what networks do.
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

/// Stands on loopback between clients and one server, or several servers of one cluster: a new
/// connection goes to the next one that takes it.
/// Threads: any; it has one of its own.
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

  // What passes from now on.

  /// In this direction, or in both, it is held for so long.
  void delay(Direction direction, std::chrono::milliseconds by);
  void delay(std::chrono::milliseconds by);
  /// So many bytes a second in this direction, or in each; 0: any number.
  void limit(Direction direction, int bytes_per_second);
  void limit(int bytes_per_second);
  /// In pieces of so many bytes, and the end of the first line in one; 0: as it comes.
  void slice(int bytes) { slice_ = bytes; }

  // The connections that there are. Nobody is told.

  /// Nothing passes in this direction any more: what is sent there is taken, and lost.
  void lose(Direction direction) { request({.kind = Order::Kind::lose, .direction = direction}); }
  /// Nothing passes in either direction any more.
  void half_open();
  /// What is sent in this direction isn't taken, until `release`.
  void hold(Direction direction) { request({.kind = Order::Kind::hold, .direction = direction}); }
  void release() { request({.kind = Order::Kind::release}); }
  /// What clients send arrives so much later, also when they have long gone; new connections are as
  /// fast as ever.
  void linger(std::chrono::milliseconds by) { request({.kind = Order::Kind::linger, .late = by}); }
  /// They are ended.
  void cut() { request({.kind = Order::Kind::cut}); }

  // New connections.

  /// They are refused, or taken again.
  void refuse(bool refuses) { refuses_ = refuses; }
  /// The server's first line passes, and nothing else in either direction.
  void fall_silent(bool silent) { silent_ = silent; }

  /// As at the beginning: what is held passes at once, and connections that lost something are
  /// ended.
  void heal();

 private:
  struct Order {
    enum class Kind : std::uint8_t { lose, hold, release, linger, cut, heal };
    Kind kind = Kind::heal;
    Direction direction = Direction::requests;
    std::chrono::milliseconds late{0};
  };
  /// How one direction is.
  struct Link {
    std::atomic<int> delay_ms{0};
    std::atomic<int> bytes_per_second{0};
  };
  struct Connection;
  struct Stream;

  /// Returns when it has been carried out.
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
