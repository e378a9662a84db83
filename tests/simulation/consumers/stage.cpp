#include "simulation/consumers/stage.hpp"

#include <thread>

namespace stela::sim {

void Stage::run(const std::vector<std::function<void()>>& players) {
  for (std::size_t i = 0; i < players.size(); ++i) {
    seats_.push_back(std::make_unique<Seat>());
    seats_.back()->order = chance_.next();
  }
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < players.size(); ++i) {
    threads.emplace_back([this, i, &player = players[i]] { play(i, player); });
  }
  turn_ = next();
  seats_[turn_]->start.release();
}

void Stage::play(std::size_t number, const std::function<void()>& player) {
  seats_[number]->start.acquire();
  player();
  look_();
  seats_[number]->is_gone = true;
  turn_ = next();
  if (turn_ == seats_.size()) return;
  now_ = std::max(now_, seats_[turn_]->due);
  seats_[turn_]->start.release();
}

void Stage::wait(Time duration) {
  look_();
  const std::size_t mine = turn_;
  seats_[mine]->due = now_ + std::max<Time>(duration, 0);
  seats_[mine]->order = chance_.next();
  turn_ = next();
  now_ = std::max(now_, seats_[turn_]->due);
  if (turn_ == mine) return;
  seats_[turn_]->start.release();
  seats_[mine]->start.acquire();
}

/// As many as there are if all are gone.
std::size_t Stage::next() const {
  std::size_t best = seats_.size();
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i]->is_gone) continue;
    const bool is_first =
        best == seats_.size() || seats_[i]->due < seats_[best]->due ||
        (seats_[i]->due == seats_[best]->due && seats_[i]->order < seats_[best]->order);
    if (is_first) best = i;
  }
  return best;
}

}  // namespace stela::sim
