// SIGINT, SIGTERM and SIGHUP as a request to stop.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace stela::tool {

class Invocation;

/// While it lives, the first SIGINT, SIGTERM or SIGHUP requests a stop, and a second SIGINT or
/// SIGTERM ends the process at once with 130. An ignored SIGHUP stays ignored. Create it before
/// other threads are started, because they inherit the blocked signals. Threads: one at a time. It
/// has one of its own, which waits for signals.
class Signals {
 public:
  /// `asked` is called on the waiting thread when a stop is requested; `forced` before the process
  /// ends.
  explicit Signals(std::function<void()> asked = {}, std::function<void()> forced = {});
  /// If another program runs the command, that program handles signals and stops the command.
  explicit Signals(const Invocation& call);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::stop_token token() const noexcept { return stop_.get_token(); }
  bool stopped() const noexcept { return stop_.stop_requested(); }
  /// Acts as if a signal had come.
  void request_stop() { stop_.request_stop(); }

 private:
  void start();
  void wait();

  std::function<void()> asked_;
  std::function<void()> forced_;
  std::stop_source stop_;
  std::jthread waiter_;
};

}  // namespace stela::tool
