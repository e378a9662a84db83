// A simulated process with a worker in it.
#pragma once

#include "simulation/simulation.hpp"

#include <memory>
#include <string>
#include <vector>

namespace stela::sim {

inline std::string name_of(int node) {
  std::string name{"w"};
  return name.append(std::to_string(node));
}

/// A process with a worker in it.
struct Simulation::Node {
  Node(Simulation& sim, int the_number, double drift)
      : number{the_number},
        clock{sim.world_, drift},
        options{sim.options_},
        store{sim.shared_.port(), sim.store_faults_, sim.world_.chance,
              [&sim, this] { sim.interrupt(*this); }},
        publisher{sim.broker_, the_number,
                  [&sim, the_number, life = the_number](const Answer& answer) {
                    sim.deliver(the_number, static_cast<std::uint64_t>(life), answer);
                  }} {
    clock.share_step(&sim.clock_step_);
    options.worker = name_of(number);
    worker = std::make_unique<relay::Worker>(
        options, sim.plan_.fence,
        relay::Worker::Ports{store, publisher, clock, sim.world_.chance, sim, sink},
        sim.plan_.mutation);
  }

  struct NoSink final : AnswerSink {
    void take(Answer) override {}
  };

  const int number;
  SimClock clock;
  RelayOptions options;
  FaultyStore store;
  SimPublisher publisher;
  NoSink sink;
  std::unique_ptr<relay::Worker> worker;
  bool alive = true;
  bool leaving = false;
  bool busy = false;
  bool poked = false;
  std::vector<Answer> answers;
  std::uint64_t alarm = 0;
  Time alarm_at = -1;
  bool drive_planned = false;
  std::size_t owned = 0;
};

}  // namespace stela::sim
