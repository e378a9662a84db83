#include "program.hpp"

#include "measure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace stela::bench {
namespace {

std::vector<char*> pointers(Words& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void fail(const Words& words, int error) {
  throw std::runtime_error{words.front() + ": " + std::strerror(error)};
}

}  // namespace

Use use_of(const Words& words, const std::string& input, const std::string& output) {
  Words copy = words;
  const std::vector<char*> arguments = pointers(copy);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int error = 0;
  int status = 0;
  rusage used{};
  const double taken = seconds([&] {
    pid_t id = -1;
    error = posix_spawn(&id, arguments[0], &files, nullptr, arguments.data(), environ);
    while (error == 0 && wait4(id, &status, 0, &used) < 0 && errno == EINTR) {
    }
  });
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) fail(words, error);
  if (!WIFEXITED(status)) throw std::runtime_error{words.front() + ' ' + words.back() + " failed"};
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {.seconds = taken,
          .processor_seconds = in_seconds(used.ru_utime) + in_seconds(used.ru_stime),
          .mib = static_cast<double>(used.ru_maxrss) / 1024,
          .exit_code = WEXITSTATUS(status)};
}

double seconds_of(const Words& words, const std::string& input, const std::string& output) {
  const Use use = use_of(words, input, output);
  if (use.exit_code != 0) throw std::runtime_error{words.front() + ' ' + words.back() + " failed"};
  return use.seconds;
}

RunningProgram::RunningProgram(const Words& words, bool in_terminal) {
  Words copy = words;
  const std::vector<char*> arguments = pointers(copy);
  const winsize size{.ws_row = 40, .ws_col = 140, .ws_xpixel = 0, .ws_ypixel = 0};
  id_ = in_terminal ? forkpty(&terminal_, nullptr, nullptr, &size) : fork();
  if (id_ < 0) fail(words, errno);
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TERM", "xterm-256color", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  if (!in_terminal) return;
  reader_ = std::jthread{[this](const std::stop_token& stop) {
    std::array<char, 65536> buffer;
    while (!stop.stop_requested()) {
      pollfd ready{.fd = terminal_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      const ssize_t size_read = read(terminal_, buffer.data(), buffer.size());
      if (size_read <= 0) return;
      shown_ += static_cast<std::size_t>(size_read);
    }
  }};
}

RunningProgram::~RunningProgram() {
  kill(id_, SIGTERM);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  reader_ = {};
  if (terminal_ >= 0) close(terminal_);
}

double RunningProgram::processor_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(id_, &clock) != 0 || clock_gettime(clock, &used) != 0) {
    throw std::runtime_error{"the program has ended"};
  }
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace stela::bench
