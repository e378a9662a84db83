// Threads of which one runs at a time, in simulated time: whoever waits is woken when it is due.
#pragma once

#include "simulation/world.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <utility>
#include <vector>

namespace stela::sim {

class Stage {
 public:
  explicit Stage(Chance& chance) noexcept : chance_{chance} {}

  Time now() const noexcept { return now_; }
  /// Called by a player before others get their turn.
  void on_wait(std::function<void()> look) { look_ = std::move(look); }

  /// Runs all of them to their end, each on a thread of its own. They must not throw.
  void run(const std::vector<std::function<void()>>& players);
  /// Others may run until then. Call it from a player that holds nothing which others wait for.
  void wait(Time duration);
  /// The same without others: they are late afterwards.
  void pass(Time duration) noexcept { now_ += duration; }

 private:
  struct Seat {
    std::binary_semaphore start{0};
    Time due = 0;
    /// Of those who are due at the same time.
    std::uint64_t order = 0;
    bool is_gone = false;
  };

  void play(std::size_t number, const std::function<void()>& player);
  std::size_t next() const;

  Chance& chance_;
  std::function<void()> look_ = [] {};
  // Whose turn it is has them.
  Time now_ = 0;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace stela::sim
