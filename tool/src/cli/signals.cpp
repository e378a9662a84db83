#include "cli/signals.hpp"

#include "cli/exit.hpp"
#include "cli/invocation.hpp"

#include <unistd.h>

#include <csignal>
#include <utility>

namespace stela::tool {
namespace {

/// SIGUSR2 ends the wait.
sigset_t awaited() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);
  // nohup ignores SIGHUP; if blocked, it would be delivered to us anyway.
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

Signals::Signals(std::function<void()> asked, std::function<void()> forced)
    : asked_{std::move(asked)}, forced_{std::move(forced)} {
  start();
}

Signals::Signals(const Invocation& call) {
  if (!call.out.is_kept()) {
    start();
  } else if (call.principal != nullptr) {
    stop_ = call.principal->stop;
  }
}

void Signals::start() {
  const sigset_t set = awaited();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::jthread{[this] { wait(); }};
}

Signals::~Signals() {
  if (waiter_.joinable()) pthread_kill(waiter_.native_handle(), SIGUSR2);
}

void Signals::wait() {
  const sigset_t set = awaited();
  for (;;) {
    int number = 0;
    if (sigwait(&set, &number) != 0) continue;
    if (number == SIGUSR2) return;
    // A closing terminal sends several SIGHUPs; they don't mean hurry.
    if (number == SIGHUP && stop_.stop_requested()) continue;
    if (!stop_.request_stop()) {
      if (forced_) forced_();
      _exit(interrupted);
    }
    if (asked_) asked_();
  }
}

}  // namespace stela::tool
