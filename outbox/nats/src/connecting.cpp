#include "connecting.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

/// nats.c may keep the time-out itself: it has so much more for that.
constexpr milliseconds slack{100};

// --- sockets that hang

/// Which socket it is; 0 if it is none.
ino_t socket_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/// A second descriptor of a socket of this process, which thereby stays the same socket.
class Descriptor {
 public:
  explicit Descriptor(int original) {
    if (socket_of(original) == 0) return;
    const int copy = fcntl(original, F_DUPFD_CLOEXEC, 0);
    // Should the number be a file's by now, the copy stays open: closing it would end the locks
    // that this process has on the file, the database's among them.
    if (socket_of(copy) != 0) number_ = copy;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// 0 if it is none.
  ino_t socket() const { return socket_of(number_); }
  int peer_port() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getpeername(number_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) {
      return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    }
    if (address.ss_family == AF_INET6) {
      return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    }
    return 0;
  }
  /// How long nothing has come from the other end.
  milliseconds silence() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(number_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return milliseconds{0};
    return milliseconds{info.tcpi_state == TCP_ESTABLISHED ? info.tcpi_last_data_recv : 0};
  }
  void shut_down() const { shutdown(number_, SHUT_RDWR); }

 private:
  int number_ = -1;
};

template <class Take>
void for_each_descriptor(Take take) {
  std::error_code error;
  std::filesystem::directory_iterator all{"/proc/self/fd", error};
  for (; !error && all != std::filesystem::directory_iterator{}; all.increment(error)) {
    const std::string name = all->path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number >= 0) take(Descriptor{number});
  }
}

std::set<ino_t> open_sockets() {
  std::set<ino_t> open;
  for_each_descriptor([&](const Descriptor& each) { open.insert(each.socket()); });
  return open;
}

/// Those to such a port that were opened since, and in which nothing has come for so long. True if
/// there was one.
bool shut_down_silent(const std::set<ino_t>& known, int port, milliseconds silence) {
  bool found = false;
  for_each_descriptor([&](const Descriptor& each) {
    const ino_t socket = each.socket();
    if (socket == 0 || known.contains(socket) || each.peer_port() != port) return;
    if (each.silence() < silence) return;
    each.shut_down();
    found = true;
  });
  return found;
}

// --- the thread that connects

/// Why there is no such host; empty if there is one.
std::string unknown_host(const std::string& host) {
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (code == 0) freeaddrinfo(found);
  return code == 0 ? "" : "the host '" + host + "' can't be found: " + gai_strerror(code);
}

/// What the thread that connects and the one that waits for it have in common.
struct Shared {
  explicit Shared(Attempt the_attempt) : attempt{std::move(the_attempt)} {}

  Attempt attempt;
  std::mutex mutex;
  std::condition_variable ended;
  // Guarded by mutex.
  bool is_over = false;
  bool is_left_behind = false;
  Attempted result = {};
};

void carry_out(Shared& shared) {
  natsConnection* raw = nullptr;
  Attempted result{.status = natsConnection_Connect(&raw, shared.attempt.options.get())};
  result.connection.reset(raw);
  if (result.status == NATS_OK) shared.attempt.closure.release();
  if (result.status == NATS_NO_SERVER) result.detail = unknown_host(shared.attempt.host);
  const std::lock_guard lock{shared.mutex};
  shared.is_over = true;
  if (!shared.is_left_behind) std::swap(shared.result, result);
  shared.ended.notify_one();
}

void begin_thread(std::shared_ptr<Shared> shared) {
  try {
    std::thread{[shared = std::move(shared)] {
      carry_out(*shared);
      nats_ReleaseThreadMemory();
    }}.detach();
  } catch (const std::system_error& e) {
    throw BrokerFailed{std::string{"there is no thread to connect with: "} + e.what()};
  }
}

}  // namespace

Attempted try_to_connect(Attempt attempt) {
  const milliseconds timeout = attempt.timeout;
  const int port = attempt.port;
  const std::set<ino_t> known = open_sockets();
  const auto shared = std::make_shared<Shared>(std::move(attempt));
  begin_thread(shared);

  const Steady::time_point limit = Steady::now() + 2 * timeout + slack;
  std::unique_lock lock{shared->mutex};
  const auto is_over = [&] { return shared->is_over; };
  bool fell_silent = false;
  for (milliseconds wait = timeout + slack; !shared->ended.wait_for(lock, wait, is_over);) {
    if (Steady::now() >= limit) {
      shared->is_left_behind = true;
      return {.status = NATS_TIMEOUT, .detail = {}, .connection = {}};
    }
    lock.unlock();
    fell_silent |= shut_down_silent(known, port, timeout);
    lock.lock();
    wait = slack;
  }
  // For nats.c the server has closed the connection.
  if (fell_silent && shared->result.status != NATS_OK) shared->result.status = NATS_TIMEOUT;
  return std::move(shared->result);
}

}  // namespace stela::nats
