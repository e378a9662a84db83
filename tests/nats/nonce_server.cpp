#include "nats/nonce_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace stela::test {
namespace {

void say(int client, std::string_view text) {
  send(client, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace

NonceServer::NonceServer(std::vector<std::string> nonces) : nonces_{std::move(nonces)} {
  thread_ = std::thread{[this] { run(); }};
}

NonceServer::~NonceServer() {
  stop_ = true;
  thread_.join();
}

void NonceServer::run() {
  std::vector<int> clients;
  std::size_t next = 0;
  while (!stop_) {
    pollfd waiting{listener_.descriptor(), POLLIN, 0};
    poll(&waiting, 1, 10);
    const int client = listener_.accept();
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
