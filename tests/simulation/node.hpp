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
        publisher{sim.broker_, clock, the_number},
        sink{sim, the_number} {
    clock.share_step(&sim.clock_step_);
    options.worker = name_of(number);
    worker = mutants::make_worker(sim.plan_.mutant, options, sim.plan_.fence,
                                  {store, publisher, clock, sim.world_.chance, sim, sink});
  }

  struct Sink final : AnswerSink {
    Sink(Simulation& the_sim, int node) noexcept : sim{the_sim}, number{node} {}
    void take(Answer answer) override { sim.deliver(number, answer); }
    Simulation& sim;
    const int number;
  };

  const int number;
  SimClock clock;
  RelayOptions options;
  FaultyStore store;
  SimPublisher publisher;
  Sink sink;
  std::unique_ptr<mutants::Worker> worker;
  bool alive = true;
  bool leaving = false;
  bool busy = false;
  bool poked = false;
  std::vector<Answer> answers;
  std::uint64_t alarm = 0;
  Time alarm_at = -1;
  bool drive_planned = false;
  bool waits_for_socket = false;
  std::size_t owned = 0;
};

}  // namespace stela::sim
