#include "support/silent_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>
#include <string_view>
#include <vector>

namespace stela::test {
namespace {

constexpr std::string_view info =
    "INFO {\"server_id\":\"SILENT\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
    "\"max_payload\":1048576}\r\n";

void answer(int client, std::string_view said) {
  constexpr std::string_view pong = "PONG\r\n";
  if (said.find("PING\r\n") != said.npos) send(client, pong.data(), pong.size(), MSG_NOSIGNAL);
}

}  // namespace

SilentServer::SilentServer(After after, int silent) : after_{after}, silent_{silent} {
  thread_ = std::thread{[this] { run(); }};
}

SilentServer::~SilentServer() {
  stop_ = true;
  thread_.join();
}

void SilentServer::run() {
  std::vector<pollfd> files{{listener_.descriptor(), POLLIN, 0}};
  std::set<int> answered;
  while (!stop_) {
    poll(files.data(), files.size(), 10);
    for (std::size_t i = files.size() - 1; i > 0; --i) {
      std::array<char, 4096> said;
      const ssize_t size = recv(files[i].fd, said.data(), said.size(), MSG_DONTWAIT);
      if (size > 0 && answered.contains(files[i].fd)) {
        answer(files[i].fd, {said.data(), static_cast<std::size_t>(size)});
      }
      if (size != 0) continue;
      answered.erase(files[i].fd);
      close(files[i].fd);
      files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const int client = listener_.accept();
    if (client < 0) continue;
    ++connections_;
    const bool is_answered = connections_ > silent_;
    if (is_answered) answered.insert(client);
    if (is_answered || after_ != After::accept) {
      send(client, info.data(), info.size(), MSG_NOSIGNAL);
    }
    // A server that falls silent after its INFO doesn't read either.
    files.push_back(
        {client, static_cast<short>(is_answered || after_ == After::ping ? POLLIN : 0), 0});
  }
  for (std::size_t i = 1; i < files.size(); ++i) close(files[i].fd);
}

}  // namespace stela::test
