// Threads of which one runs at a time, as chance has it: interleavings that a seed repeats.
#pragma once

#include "simulation/world.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <vector>

namespace stela::sim {

class Turns {
 public:
  explicit Turns(Chance& chance) noexcept : chance_{chance} {}

  /// Runs all of them to their end, each on a thread of its own. They must not throw.
  void run(const std::vector<std::function<void()>>& players);
  /// Lets chance say who is next. Call it from a player that holds nothing which others wait for.
  void pass();

 private:
  void play(std::size_t number, const std::function<void()>& player);
  void choose();

  Chance& chance_;
  // Whose turn it is has them.
  std::vector<std::size_t> players_;
  std::vector<std::unique_ptr<std::binary_semaphore>> starts_;
  std::size_t turn_ = 0;
};

}  // namespace stela::sim
