#include "chaos/child.hpp"

#include "support/process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace stela::chaos {
namespace {

/// A request to stop that comes before the child listens waits until it does. Returns the mask of
/// before.
sigset_t hold_termination() {
  sigset_t held;
  sigset_t before;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  return before;
}

}  // namespace

Child::Child(std::vector<std::string> arguments, const std::string& log, const std::string& host) {
  std::vector<char*> raw;
  std::string program = "stela_chaos";
  raw.push_back(program.data());
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  const auto mask = hold_termination();
  id_ = fork();
  if (id_ != 0) pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (id_ < 0) throw std::runtime_error{"fork failed"};
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!host.empty() && unshare(CLONE_NEWUTS) == 0) sethostname(host.data(), host.size());
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    execv("/proc/self/exe", raw.data());
    _exit(127);
  }
}

Child::~Child() {
  kill();
}

void Child::signal(int number) const {
  if (!reaped_) ::kill(id_, number);
}

void Child::note(int status) noexcept {
  reaped_ = true;
  result_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Child::kill() {
  if (reaped_) return;
  ::kill(id_, SIGKILL);
  int status = 0;
  waitpid(id_, &status, 0);
  note(status);
}

bool Child::is_running() {
  if (reaped_) return false;
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) == id_) note(status);
  return !reaped_;
}

int Child::stop() {
  signal(SIGCONT);
  signal(SIGTERM);
  test::eventually([this] { return !is_running(); }, std::chrono::seconds{15});
  return is_running() ? -1 : result_;
}

}  // namespace stela::chaos
