#include "support/nats_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace stela::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* places[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
                                  "/usr/local/bin/nats-server"};

std::string find_server() {
  for (const char* const place : places) {
    if (access(place, X_OK) == 0) return place;
  }
  throw std::runtime_error{"there is no nats-server; install the package nats-server"};
}

/// The server writes a file with its URLs once it listens.
std::string read_url(const fs::path& dir) {
  for (const auto& entry : fs::directory_iterator{dir}) {
    if (entry.path().extension() != ".ports") continue;
    std::ifstream file{entry.path()};
    std::stringstream text;
    text << file.rdbuf();
    const std::string ports = text.str();
    const std::size_t begin = ports.find("nats://");
    if (begin == std::string::npos) continue;
    return ports.substr(begin, ports.find('"', begin) - begin);
  }
  return {};
}

}  // namespace

NatsServer::NatsServer() {
  const std::string server = find_server();
  const std::string dir = dir_.path().string();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error{"fork failed"};
  if (pid_ == 0) {
    const int log = open(dir_.file("server.log").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(server.c_str(), "nats-server", "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", dir.c_str(),
          "--ports_file_dir", dir.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while ((url_ = read_url(dir_.path())).empty()) {
    if (std::chrono::steady_clock::now() > limit || waitpid(pid_, nullptr, WNOHANG) != 0) {
      throw std::runtime_error{"nats-server didn't start"};
    }
    poll(nullptr, 0, 5);
  }
}

NatsServer::~NatsServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace stela::test
