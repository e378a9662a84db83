#include "support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "support/loopback.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <utility>

namespace stela::test {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A sender waits once this much is held for a slow receiver.
constexpr std::size_t most_held = 4 * 1024 * 1024;

int connect_to(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return file;
  close(file);
  return -1;
}

}  // namespace

/// One direction of a connection: the data that was read and not yet written.
struct TcpProxy::Stream {
  struct Piece {
    Steady::time_point due;
    std::string bytes;
  };
  Direction direction = Direction::requests;
  int from = -1;
  int to = -1;
  bool loses = false;
  bool is_held = false;
  /// Everything after the first line is lost.
  bool only_greets = false;
  bool has_greeted = false;
  /// Its first line isn't complete yet.
  bool is_in_first_line = true;
  bool is_over = false;
  milliseconds late{0};
  /// The time at which the line has carried all data read so far.
  Steady::time_point carried = {};
  std::size_t held = 0;
  std::deque<Piece> pieces = {};
};

struct TcpProxy::Connection {
  Connection(int the_client, int the_server)
      : client{the_client},
        server{the_server},
        requests{.direction = Direction::requests, .from = the_client, .to = the_server},
        answers{.direction = Direction::answers, .from = the_server, .to = the_client} {}
  ~Connection() {
    close(client);
    close(server);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Stream& stream(Direction direction) {
    return direction == Direction::requests ? requests : answers;
  }

  int client;
  int server;
  Stream requests;
  Stream answers;
};

TcpProxy::TcpProxy(std::vector<int> server_ports) : server_ports_{std::move(server_ports)} {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error{"the proxy can't listen"};
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[this] { run(); }};
}

TcpProxy::~TcpProxy() {
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  thread_.join();
  close(listener_);
  close(wake_);
}

void TcpProxy::delay(Direction direction, milliseconds by) {
  links_[static_cast<std::size_t>(direction)].delay_ms = static_cast<int>(by.count());
}

void TcpProxy::delay(milliseconds by) {
  for (const Direction each : {Direction::requests, Direction::answers}) delay(each, by);
}

void TcpProxy::limit(Direction direction, int bytes_per_second) {
  links_[static_cast<std::size_t>(direction)].bytes_per_second = bytes_per_second;
}

void TcpProxy::limit(int bytes_per_second) {
  for (const Direction each : {Direction::requests, Direction::answers}) {
    limit(each, bytes_per_second);
  }
}

void TcpProxy::half_open() {
  for (const Direction each : {Direction::requests, Direction::answers}) lose(each);
}

void TcpProxy::heal() {
  delay(milliseconds{0});
  limit(0);
  slice_ = 0;
  refuses_ = silent_ = false;
  request({.kind = Order::Kind::heal});
}

void TcpProxy::request(const Order& order) {
  std::unique_lock lock{mutex_};
  orders_.push_back(order);
  const std::uint64_t mine = ++ordered_;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  carried_out_.wait(lock, [&] { return done_ >= mine; });
}

void TcpProxy::carry_out_orders() {
  const std::lock_guard lock{mutex_};
  for (const Order& order : orders_) carry_out(order);
  orders_.clear();
  done_ = ordered_;
  carried_out_.notify_all();
}

void TcpProxy::carry_out(const Order& order) {
  const auto loses = [](const auto& c) {
    return c->requests.loses || c->answers.loses || c->answers.only_greets;
  };
  if (order.kind == Order::Kind::cut) connections_.clear();
  if (order.kind == Order::Kind::heal) std::erase_if(connections_, loses);
  for (const auto& connection : connections_) {
    if (order.kind == Order::Kind::lose) connection->stream(order.direction).loses = true;
    if (order.kind == Order::Kind::hold) connection->stream(order.direction).is_held = true;
    if (order.kind == Order::Kind::linger) connection->requests.late = order.late;
    if (order.kind != Order::Kind::release && order.kind != Order::Kind::heal) continue;
    for (Stream* const stream : {&connection->requests, &connection->answers}) {
      stream->is_held = false;
      if (order.kind != Order::Kind::heal) continue;
      stream->late = milliseconds{0};
      stream->carried = {};
      for (Stream::Piece& piece : stream->pieces) piece.due = {};
    }
  }
}

int TcpProxy::connect_to_a_server() {
  for (std::size_t i = 0; i < server_ports_.size(); ++i) {
    const int server = connect_to(server_ports_[next_server_++ % server_ports_.size()]);
    if (server >= 0) return server;
  }
  return -1;
}

void TcpProxy::take_connection() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = refuses_ ? -1 : connect_to_a_server();
  if (server < 0) {
    close(client);
    return;
  }
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connections_.push_back(std::make_unique<Connection>(client, server));
  if (!silent_) return;
  connections_.back()->requests.loses = true;
  connections_.back()->answers.only_greets = true;
}

void TcpProxy::run() {
  std::vector<pollfd> files;
  while (!stop_) {
    files.assign({{wake_, POLLIN, 0}, {listener_, POLLIN, 0}});
    int wait = -1;
    for (const auto& connection : connections_) {
      for (const Stream* stream : {&connection->requests, &connection->answers}) {
        const short wanted = stream->held < most_held ? POLLIN : 0;
        const bool is_read = !stream->is_held && !connection->requests.is_over;
        files.push_back({is_read ? stream->from : -1, wanted, 0});
        if (!stream->pieces.empty()) wait = 1;
      }
    }
    poll(files.data(), files.size(), wait);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto size = read(wake_, &count, sizeof count);
    carry_out_orders();
    take_connection();
    for (const auto& connection : connections_) pump(*connection);
    std::erase_if(connections_, [](const auto& c) {
      // Requests of a client that has left still arrive.
      return c->answers.is_over || (c->requests.is_over && c->requests.pieces.empty());
    });
  }
}

void TcpProxy::pump(Connection& connection) {
  for (Stream* const stream : {&connection.requests, &connection.answers}) {
    if (connection.requests.is_over && stream == &connection.answers) return;
    if (stream->is_over) {
      write_due(*stream);
      continue;
    }
    if (!stream->is_held) read_from(*stream);
    if (stream->loses) stream->pieces.clear(), stream->held = 0;
    write_due(*stream);
  }
}

void TcpProxy::read_from(Stream& stream) {
  std::array<char, 65536> buffer;
  while (stream.held < most_held) {
    const ssize_t size = recv(stream.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size == 0) stream.is_over = true;
    if (size <= 0) {
      if (size < 0 && errno != EAGAIN && errno != EINTR) stream.is_over = true;
      return;
    }
    if (!stream.loses) take(stream, {buffer.data(), static_cast<std::size_t>(size)});
  }
}

void TcpProxy::take(Stream& stream, std::string bytes) {
  if (stream.has_greeted) return;
  if (stream.only_greets) {
    const std::size_t end = bytes.find('\n');
    stream.has_greeted = end != std::string::npos;
    if (stream.has_greeted) bytes.resize(end + 1);
  }
  const Link& link = links_[static_cast<std::size_t>(stream.direction)];
  stream.carried = std::max(stream.carried, Steady::now());
  if (const int rate = link.bytes_per_second; rate > 0) {
    stream.carried += std::chrono::microseconds{bytes.size() * 1'000'000 / unsigned(rate)};
  }
  stream.held += bytes.size();
  const auto due = stream.carried + milliseconds{link.delay_ms} + stream.late;
  stream.pieces.push_back({due, std::move(bytes)});
}

void TcpProxy::write_due(Stream& stream) {
  const int slice = slice_;
  while (!stream.pieces.empty() && stream.pieces.front().due <= Steady::now()) {
    std::string& bytes = stream.pieces.front().bytes;
    std::size_t wanted =
        slice > 0 ? std::min(bytes.size(), static_cast<std::size_t>(slice)) : bytes.size();
    // nats.c before 3.13 misses the end of the server's first line if its two bytes arrive apart.
    if (stream.is_in_first_line && wanted < bytes.size() && bytes[wanted - 1] == '\r') ++wanted;
    const ssize_t size = send(stream.to, bytes.data(), wanted, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) {
      if (errno != EAGAIN && errno != EINTR) stream.is_over = true;
      return;
    }
    const auto written = static_cast<std::size_t>(size);
    stream.is_in_first_line = stream.is_in_first_line && bytes.find('\n') >= written;
    stream.held -= written;
    bytes.erase(0, written);
    if (bytes.empty()) stream.pieces.pop_front();
    // One slice per turn, so that each arrives separately.
    if (slice > 0) return;
  }
}

}  // namespace stela::test
