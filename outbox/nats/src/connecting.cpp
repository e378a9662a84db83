#include "connecting.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

/// Extra time in which nats.c may notice the time-out itself.
constexpr milliseconds connect_slack{100};

// --- sockets that hang

/// One end of a connection; port 0 if there is none.
struct End {
  std::string address = {};
  int port = 0;

  friend bool operator==(const End&, const End&) = default;
};

template <class Bytes>
End make_end(const Bytes& address, in_port_t port) {
  return {{reinterpret_cast<const char*>(&address), sizeof address}, ntohs(port)};
}

End end_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    return make_end(four.sin_addr, four.sin_port);
  }
  if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    return make_end(six.sin6_addr, six.sin6_port);
  }
  return {};
}

/// `which` is getsockname or getpeername.
template <class Which>
End end_of_socket(int descriptor, Which which) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (which(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return end_of(address);
}

/// The socket's inode; 0 if it isn't a socket.
ino_t socket_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/// A second descriptor of one of this process's sockets, which keeps that socket in existence.
class Descriptor {
 public:
  Descriptor(int original, ino_t socket) {
    const int copy = fcntl(original, F_DUPFD_CLOEXEC, 0);
    // If the number now belongs to a file, the copy stays open: closing it would release this
    // process's locks on the file, which may be the database.
    if (socket_of(copy) != 0) number_ = copy;
    is_same_ = socket_of(number_) == socket;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_same() const noexcept { return is_same_; }
  /// How long the other end has been silent.
  milliseconds silence() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(number_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return milliseconds{0};
    return milliseconds{info.tcpi_state == TCP_ESTABLISHED ? info.tcpi_last_data_recv : 0};
  }
  void shut_down() const { shutdown(number_, SHUT_RDWR); }

 private:
  int number_ = -1;
  bool is_same_ = false;
};

/// Calls `take` with each descriptor and its socket.
template <class Take>
void for_each_socket(Take take) {
  std::error_code error;
  std::filesystem::directory_iterator all{"/proc/self/fd", error};
  for (; !error && all != std::filesystem::directory_iterator{}; all.increment(error)) {
    const std::string name = all->path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (const ino_t socket = socket_of(number); socket != 0) take(number, socket);
  }
}

std::set<ino_t> open_sockets() {
  std::set<ino_t> open;
  for_each_socket([&](int, ino_t socket) { open.insert(socket); });
  return open;
}

/// The sockets of this process's successful attempts, which may be silent for any time.
/// Threads: any.
class Connected {
 public:
  void add(natsConnection* connection) {
    char* address = nullptr;
    int port = 0;
    if (natsConnection_GetLocalIPAndPort(connection, &address, &port) != NATS_OK) return;
    std::free(address);
    std::set<ino_t> open;
    const std::lock_guard lock{mutex_};
    for_each_socket([&](int number, ino_t socket) {
      const bool is_new = end_of_socket(number, getsockname).port == port;
      if (is_new || sockets_.contains(socket)) open.insert(socket);
    });
    sockets_ = std::move(open);
  }
  bool contains(ino_t socket) const {
    const std::lock_guard lock{mutex_};
    return sockets_.contains(socket);
  }

 private:
  mutable std::mutex mutex_;
  /// Sockets that were open when the last one was added. Guarded by mutex_.
  std::set<ino_t> sockets_;
};

/// Never destroyed, because abandoned threads outlive static objects.
Connected& connected() {
  static auto& all = *new Connected;
  return all;
}

/// Shuts down sockets to these servers that are newer than `known` and have been silent for
/// `silence`. True if there were any.
bool shut_down_silent(const std::set<ino_t>& known, const std::vector<End>& server,
                      milliseconds silence) {
  bool found = false;
  for_each_socket([&](int number, ino_t socket) {
    if (known.contains(socket) || connected().contains(socket)) return;
    const End peer = end_of_socket(number, getpeername);
    if (std::find(server.begin(), server.end(), peer) == server.end()) return;
    const Descriptor held{number, socket};
    if (!held.is_same() || held.silence() < silence) return;
    held.shut_down();
    found = true;
  });
  return found;
}

// --- the thread that connects

/// A server's addresses, or why it can't be found.
struct Found {
  std::vector<End> ends = {};
  std::string problem = {};
};

Found find(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &all);
  if (code != 0) {
    return {.problem = "the host '" + host + "' can't be found: " + gai_strerror(code)};
  }
  Found found;
  for (const addrinfo* each = all; each != nullptr; each = each->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
    found.ends.push_back(end_of(address));
  }
  freeaddrinfo(all);
  return found;
}

/// State shared by the connecting thread and the one that waits for it.
struct Shared {
  explicit Shared(Attempt the_attempt) : attempt{std::move(the_attempt)} {}

  Attempt attempt;
  std::mutex mutex;
  std::condition_variable ended;
  // Guarded by mutex.
  bool is_over = false;
  bool is_left_behind = false;
  Attempted result = {};
  /// The server's addresses, once known.
  std::vector<End> server = {};
};

Attempted connect(Shared& shared) {
  Found found = find(shared.attempt.host, shared.attempt.port);
  if (found.ends.empty()) return {.status = NATS_NO_SERVER, .detail = std::move(found.problem)};
  {
    const std::lock_guard lock{shared.mutex};
    shared.server = std::move(found.ends);
  }
  natsConnection* raw = nullptr;
  Attempted result{.status = natsConnection_Connect(&raw, shared.attempt.options.get())};
  result.connection.reset(raw);
  if (result.status != NATS_OK) return result;
  shared.attempt.closure.release();
  connected().add(raw);
  return result;
}

void carry_out(Shared& shared) {
  Attempted result = connect(shared);
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
  const std::set<ino_t> known = open_sockets();
  const auto shared = std::make_shared<Shared>(std::move(attempt));
  begin_thread(shared);

  const Steady::time_point limit = Steady::now() + 2 * timeout + connect_slack;
  std::unique_lock lock{shared->mutex};
  const auto is_over = [&] { return shared->is_over; };
  bool fell_silent = false;
  for (milliseconds wait = timeout + connect_slack; !shared->ended.wait_for(lock, wait, is_over);) {
    if (Steady::now() >= limit) {
      shared->is_left_behind = true;
      return {.status = NATS_TIMEOUT, .detail = {}, .connection = {}};
    }
    const std::vector<End> server = shared->server;
    lock.unlock();
    fell_silent |= shut_down_silent(known, server, timeout);
    lock.lock();
    wait = connect_slack;
  }
  // nats.c thinks that the server closed the connection.
  if (fell_silent && shared->result.status != NATS_OK) shared->result.status = NATS_TIMEOUT;
  return std::move(shared->result);
}

}  // namespace stela::nats
