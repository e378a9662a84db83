// Those who make a story of consumers: who writes, who operates, and what goes wrong.
#pragma once

#include "simulation/consumers/process.hpp"
#include "simulation/consumers/town.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace stela::sim {

/// Writes and publishes.
class Author {
 public:
  Author(Town& town, Writer& writer) : town_{town}, writer_{writer} {}
  void live();

 private:
  void write();
  void give_mood(const WrittenEvent& event);

  Town& town_;
  Writer& writer_;
};

/// The consumer's operator.
class Clerk {
 public:
  explicit Clerk(Town& town) : town_{town} {}
  void live();

 private:
  void work();
  void answer_parked();
  void move_back();

  Town& town_;
};

/// Makes trouble, ends it, and waits until everybody is at rest.
class Director {
 public:
  Director(Town& town, std::vector<std::unique_ptr<Process>>& processes,
           std::vector<std::unique_ptr<Author>>& authors)
      : town_{town}, processes_{processes}, authors_{authors} {}
  void live();

 private:
  void strike();
  void strike_line();
  void strike_stream();
  void strike_relay();
  void strike_store();
  void leave();
  void later(Time delay, std::function<void()> undo);
  void undo_what_is_due();
  void heal();
  void end();
  bool is_at_rest() const;
  bool rest();
  bool retry_all();
  Writer& any_writer();

  Town& town_;
  std::vector<std::unique_ptr<Process>>& processes_;
  std::vector<std::unique_ptr<Author>>& authors_;
  std::vector<std::pair<Time, std::function<void()>>> undo_;
};

}  // namespace stela::sim
