// SIGTERM as a request to stop.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <stop_token>
#include <thread>

namespace stela::test {

/// Requests a stop on SIGTERM. Create one per process, before other threads.
class Termination {
 public:
  Termination() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread{[this] {
      int number = 0;
      sigwait(&signals_, &number);
      source_.request_stop();
    }};
    thread_.detach();
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  sigset_t signals_{};
  std::stop_source source_;
  std::thread thread_;
};

}  // namespace stela::test
