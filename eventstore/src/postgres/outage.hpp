// Handles a server that can't be reached.
#pragma once

#include <stela/framework/error.hpp>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stela::postgres {

/// Spaces out the attempts to reach the server, across all threads, and lets callers wait for it
/// when it has just gone. After that, calls between two attempts fail at once.
/// Threads: any number at once.
class Outage {
 public:
  explicit Outage(std::chrono::milliseconds patience) noexcept : patience_{patience} {}

  /// While the server can't be reached, throws StoreBusy with the last attempt's error.
  void check();
  /// Runs `attempt`, and repeats it after a StoreBusy while there is patience. Returns its result.
  template <class Attempt>
  auto outlast(Attempt&& attempt) -> decltype(attempt()) {
    while (true) {
      wait_for_turn();
      try {
        auto made = attempt();
        end();
        return made;
      } catch (const StoreBusy& e) {
        if (!may_try_again(e.what())) throw;
      }
    }
  }

 private:
  using Time = std::chrono::steady_clock::time_point;

  /// StoreBusy with the last attempt's error, if the next attempt isn't due and there is no
  /// patience left.
  void wait_for_turn();
  bool may_try_again(std::string why);
  void end();

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<Time> since_;
  Time next_ = {};
  std::chrono::milliseconds pause_{0};
  std::string why_;
};

}  // namespace stela::postgres
