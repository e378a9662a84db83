#include "nats/nonce_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace stela::test {
namespace {

void say(int client, std::string_view text) {
  send(client, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace

NonceServer::NonceServer(std::vector<std::string> nonces) : nonces_{std::move(nonces)} {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || bind(listener_, any, size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, any, &size) != 0) {
    throw std::system_error{errno, std::generic_category(), "listening"};
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[this] { run(); }};
}

NonceServer::~NonceServer() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

void NonceServer::run() {
  std::vector<int> clients;
  std::size_t next = 0;
  while (!stop_) {
    pollfd waiting{listener_, POLLIN, 0};
    poll(&waiting, 1, 10);
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    if (welcome(client, nonces_[next])) {
      clients.push_back(client);
    } else {
      close(client);
    }
    next = std::min(next + 1, nonces_.size() - 1);
  }
  for (const int client : clients) close(client);
}

bool NonceServer::welcome(int client, const std::string& nonce) {
  say(client,
      "INFO {\"server_id\":\"NONCE\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
      "\"max_payload\":1048576,\"auth_required\":true,\"nonce\":\"" +
          nonce + "\"}\r\n");
  std::string said;
  while (!stop_ && said.find("PING\r\n") == said.npos) {
    pollfd waiting{client, POLLIN, 0};
    if (poll(&waiting, 1, 10) == 0) continue;
    std::array<char, 4096> more;
    const ssize_t size = recv(client, more.data(), more.size(), 0);
    if (size <= 0) return false;
    said.append(more.data(), static_cast<std::size_t>(size));
  }
  const bool is_signed = said.find("\"sig\":\"") != said.npos;
  say(client, is_signed ? "PONG\r\n" : "-ERR 'Authorization Violation'\r\n");
  return is_signed;
}

}  // namespace stela::test
