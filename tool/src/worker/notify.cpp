#include "worker/notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace stela::tool {

ServiceManager::ServiceManager() {
  if (const char* socket = std::getenv("NOTIFY_SOCKET")) socket_ = socket;
  if (const char* text = std::getenv("WATCHDOG_USEC")) {
    std::int64_t microseconds = 0;
    std::from_chars(text, text + std::strlen(text), microseconds);
    watchdog_ = std::chrono::microseconds{microseconds};
  }
}

void ServiceManager::alive(std::chrono::steady_clock::time_point now) {
  if (watchdog_.count() <= 0 || now - last_sign_ < watchdog_ / 4) return;
  last_sign_ = now;
  send("WATCHDOG=1");
}

void ServiceManager::send_once(bool& sent, std::string_view text) {
  if (sent) return;
  sent = true;
  send(text);
}

void ServiceManager::send(std::string_view text) const noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  // A leading @ means an abstract socket, without a file.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  [[maybe_unused]] const ssize_t sent = sendto(file, text.data(), text.size(), MSG_NOSIGNAL,
                                               reinterpret_cast<const sockaddr*>(&address), size);
  close(file);
}

}  // namespace stela::tool
