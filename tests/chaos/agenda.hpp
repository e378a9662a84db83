// What is to be done later: most of it undoes a fault.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>

namespace stela::chaos {

class Agenda {
 public:
  using Action = std::function<void()>;

  void later(std::chrono::milliseconds wait, Action action) {
    actions_.emplace(Steady::now() + wait, std::move(action));
  }
  /// Those whose time has come, and what they add for now.
  void run_due() {
    while (!actions_.empty() && actions_.begin()->first <= Steady::now()) run_first();
  }
  /// All of them, now, and what they add.
  void run_all() {
    while (!actions_.empty()) run_first();
  }

 private:
  using Steady = std::chrono::steady_clock;

  void run_first() {
    const Action action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
  }

  std::multimap<Steady::time_point, Action> actions_;
};

}  // namespace stela::chaos
