#include "support/nats_server.hpp"

#include "support/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace stela::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* places[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
                                  "/usr/local/bin/nats-server"};

/// The server named by the environment, or Debian's.
std::string find_server() {
  if (const char* const named = std::getenv("STELA_NATS_SERVER")) {
    if (access(named, X_OK) == 0) return named;
    throw std::runtime_error{std::string{"STELA_NATS_SERVER names no program: "} + named};
  }
  for (const char* const place : places) {
    if (access(place, X_OK) == 0) return place;
  }
  throw std::runtime_error{"there is no nats-server; install the package nats-server"};
}

/// The server writes its URLs to a file once it listens.
std::string read_url(const fs::path& dir) {
  for (const auto& entry : fs::directory_iterator{dir}) {
    if (entry.path().extension() != ".ports") continue;
    std::ifstream file{entry.path()};
    std::stringstream text;
    text << file.rdbuf();
    const std::string ports = text.str();
    const std::size_t begin = std::min(ports.find("nats://"), ports.find("tls://"));
    if (begin == std::string::npos) continue;
    return ports.substr(begin, ports.find('"', begin) - begin);
  }
  return {};
}

}  // namespace

NatsServer::NatsServer(const std::string& config) {
  std::string own = config;
  for (std::size_t at = 0; (at = own.find('@', at)) != std::string::npos;) {
    own.replace(at, 1, dir_.path().string());
  }
  std::ofstream{dir_.file("server.conf")} << "jetstream { store_dir: \"" << dir_.path().string()
                                          << "\" }\n"
                                          << own << '\n';
  start("-1");
}

NatsServer::~NatsServer() {
  kill();
}

void NatsServer::start(const std::string& port) {
  const std::string server = find_server();
  const std::string dir = dir_.path().string();
  const std::string config = dir_.file("server.conf");
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error{"fork failed"};
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(dir_.file("server.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(server.c_str(), "nats-server", "-c", config.c_str(), "-a", "127.0.0.1", "-p",
          port.c_str(), "--ports_file_dir", dir.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  wait_until_it_listens();
}

void NatsServer::wait_until_it_listens() {
  eventually([this] {
    url_ = read_url(dir_.path());
    return !url_.empty() || waitpid(pid_, nullptr, WNOHANG) != 0;
  });
  if (url_.empty()) throw std::runtime_error{"nats-server didn't start: " + last_line_of_log()};
}

std::string NatsServer::last_line_of_log() const {
  std::ifstream log{dir_.file("server.log")};
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  return last;
}

int NatsServer::port() const {
  return std::stoi(url_.substr(url_.rfind(':') + 1));
}

void NatsServer::pause() const {
  ::kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void NatsServer::resume() const {
  ::kill(pid_, SIGCONT);
}

void NatsServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void NatsServer::start_again() {
  const std::string port = std::to_string(this->port());
  // Removes the file that the dead server wrote when it started.
  for (const auto& entry : fs::directory_iterator{dir_.path()}) {
    if (entry.path().extension() == ".ports") fs::remove(entry.path());
  }
  start(port);
}

}  // namespace stela::test
