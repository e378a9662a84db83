#include "simulation/turns.hpp"

#include <iterator>
#include <thread>

namespace stela::sim {

void Turns::run(const std::vector<std::function<void()>>& players) {
  for (std::size_t i = 0; i < players.size(); ++i) {
    players_.push_back(i);
    starts_.push_back(std::make_unique<std::binary_semaphore>(0));
  }
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < players.size(); ++i) {
    threads.emplace_back([this, i, &player = players[i]] { play(i, player); });
  }
  choose();
}

void Turns::play(std::size_t number, const std::function<void()>& player) {
  starts_[number]->acquire();
  player();
  std::erase(players_, number);
  choose();
}

void Turns::pass() {
  const std::size_t mine = turn_;
  choose();
  starts_[mine]->acquire();
}

void Turns::choose() {
  if (players_.empty()) return;
  turn_ = players_[static_cast<std::size_t>(chance_.below(std::ssize(players_)))];
  starts_[turn_]->release();
}

}  // namespace stela::sim
