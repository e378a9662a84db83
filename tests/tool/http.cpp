#include "tool/http.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "support/loopback.hpp"

#include <array>

namespace stela::test {

namespace {

std::string ask(const sockaddr* address, socklen_t size_of_address, const std::string& request,
                bool ends) {
  const int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (connect(file, address, size_of_address) == 0 &&
      send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    if (ends) shutdown(file, SHUT_WR);
    std::array<char, 4096> buffer;
    for (ssize_t size; (size = recv(file, buffer.data(), buffer.size(), 0)) > 0;) {
      answer.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  close(file);
  return answer;
}

std::string ask(std::uint16_t port, const std::string& request, bool ends) {
  const sockaddr_in address = loopback(port);
  return ask(reinterpret_cast<const sockaddr*>(&address), sizeof address, request, ends);
}

}  // namespace

std::string ask_file(const std::string& path, const std::string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return ask(reinterpret_cast<const sockaddr*>(&address), sizeof address, request, false);
}

std::string ask(std::uint16_t port, const std::string& request) {
  return ask(port, request, false);
}

std::string ask_and_end(std::uint16_t port, const std::string& request) {
  return ask(port, request, true);
}

std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

std::uint16_t port_in(const std::string& text) {
  const std::size_t at = text.find("127.0.0.1:");
  return at == std::string::npos ? 0 : static_cast<std::uint16_t>(std::stoi(text.substr(at + 10)));
}

std::string body_of(const std::string& answer) {
  const std::size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? std::string{} : answer.substr(at + 4);
}

}  // namespace stela::test
