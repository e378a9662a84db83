#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

namespace stela::test {
namespace {

[[noreturn]] void fail(const char* doing) {
  throw std::system_error{errno, std::generic_category(), doing};
}

[[noreturn]] void run_and_exit(const std::function<void()>& work) {
  int result = 0;
  try {
    work();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "a child process failed: %s\n", e.what());
    result = 1;
  }
  std::fflush(nullptr);
  // Unlike exit(), doesn't destroy the parent's static objects.
  _exit(result);
}

}  // namespace

Process::Process(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ < 0) fail("fork");
  if (id_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  run_and_exit(work);
}

Process::~Process() {
  kill();
}

Process::Process(Process&& other) noexcept
    : id_{std::exchange(other.id_, -1)},
      reaped_{std::exchange(other.reaped_, true)},
      result_{other.result_} {}

void Process::signal(int number) const {
  if (!reaped_) ::kill(id_, number);
}

void Process::wait_until_stopped() const {
  int status = 0;
  while (waitpid(id_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void Process::note(int status) noexcept {
  reaped_ = true;
  result_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Process::kill() {
  if (reaped_) return;
  ::kill(id_, SIGKILL);
  wait();
}

int Process::wait() {
  int status = 0;
  while (!reaped_) {
    if (waitpid(id_, &status, 0) == id_) {
      note(status);
    } else if (errno != EINTR) {
      fail("waitpid");
    }
  }
  return result_;
}

bool Process::is_running() {
  int status = 0;
  if (!reaped_ && waitpid(id_, &status, WNOHANG) == id_) note(status);
  return !reaped_;
}

SharedPages::SharedPages(std::size_t size)
    : address_{mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)},
      size_{size} {
  if (address_ == MAP_FAILED) fail("mmap");
}

SharedPages::~SharedPages() {
  munmap(address_, size_);
}

Pipe::Pipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) fail("pipe2");
  if (fcntl(ends_[0], F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
}

Pipe::~Pipe() {
  close(ends_[0]);
  close(ends_[1]);
}

void Pipe::write(const std::string& bytes) const {
  while (::write(ends_[1], bytes.data(), bytes.size()) < 0) {
    if (errno != EINTR) fail("write to a pipe");
  }
}

std::string Pipe::read_available() const {
  std::string all;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t size = read(ends_[0], buffer.data(), buffer.size());
    if (size > 0) {
      all.append(buffer.data(), static_cast<std::size_t>(size));
    } else if (size == 0 || errno != EINTR) {
      return all;
    }
  }
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

bool is_stopped_within(std::chrono::microseconds pace, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock{mutex};
  std::condition_variable_any stopped;
  stopped.wait_for(lock, stop, pace, [] { return false; });
  return stop.stop_requested();
}

}  // namespace stela::test
