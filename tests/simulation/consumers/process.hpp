// A process that consumes one stream: it dies, hangs, and is started again.
#pragma once

#include "mutants/follower.hpp"
#include "simulation/consumers/town.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace stela::sim {

class Process final : private Waiter {
 public:
  Process(Town& town, std::string stream);
  ~Process() override;

  /// Until the story is over.
  void live();
  /// It ends as it should, and is started again.
  void ask_to_leave() { stop_.request_stop(); }
  const std::string& stream() const noexcept { return stream_; }

 private:
  class HostClock;
  class Effect;
  struct Body;

  void start();
  void work();
  void bury();
  void wait(Time duration) override;
  /// Here it may die; others may get their turn, unless they would wait for its lock.
  void interrupt(bool is_inside);
  void meet_neighbour();
  void handle(Transaction& transaction, const StoredEvent& event);
  [[noreturn]] void die(const char* where);

  Town& town_;
  const std::string stream_;
  std::stop_source stop_;
  std::unique_ptr<Body> body_;
  std::vector<std::unique_ptr<Body>> hanging_;
};

}  // namespace stela::sim
