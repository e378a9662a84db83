#include "nats/wire_client.hpp"

#include "support/loopback.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace stela::test {

WireClient::WireClient(const std::string& url) : socket_{socket(AF_INET, SOCK_STREAM, 0)} {
  const sockaddr_in address = loopback(std::stoi(url.substr(url.rfind(':') + 1)));
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error{errno, std::generic_category(), "connecting"};
  }
  read_until("\r\n");
  write("CONNECT {\"verbose\":false,\"headers\":true}\r\n");
}

WireClient::~WireClient() {
  close(socket_);
}

void WireClient::publish(const std::string& subject, const std::string& head,
                         const std::string& payload) {
  write("HPUB " + subject + ' ' + std::to_string(head.size()) + ' ' +
        std::to_string(head.size() + payload.size()) + "\r\n" + head + payload + "\r\nPING\r\n");
  read_until("PONG\r\n");
}

void WireClient::write(const std::string& text) const {
  if (send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) {
    return;
  }
  throw std::system_error{errno, std::generic_category(), "writing"};
}

void WireClient::read_until(const std::string& end) {
  std::string said;
  while (!said.ends_with(end)) {
    char c = 0;
    if (recv(socket_, &c, 1, 0) != 1) throw std::runtime_error{"the server said: " + said};
    said += c;
  }
}

}  // namespace stela::test
