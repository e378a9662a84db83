// One seed's story: workers, appends and faults, then everything heals and must come right.
#pragma once

#include "relay/worker.hpp"
#include "simulation/faulty_store.hpp"
#include "simulation/model_store.hpp"
#include "simulation/sim_broker.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::sim {

/// What a run is made of. Everything is drawn from the seed; a test may pin some of it.
struct Plan {
  std::uint64_t seed = 0;
  relay::Mutation mutation = relay::Mutation::none;
  Fence fence = Fence::stream;
  int workers = 3;
  int partitions = 16;
  int streams = 40;
  Time faults_until = 600 * second;
  double appends_per_second = 2;
  /// How many faults may happen; shrinking lowers it.
  std::int64_t most_faults = INT64_MAX;
  /// Faults of a kind that was switched off don't happen; shrinking switches them off.
  std::uint32_t kinds = UINT32_MAX;
  bool trace = false;

  static Plan draw(std::uint64_t seed);
};

struct Outcome {
  std::optional<Violation> violation;
  Time simulated = 0;
  std::uint64_t hash = 0;
  std::int64_t appended = 0;
  std::int64_t stored = 0;
  std::int64_t faults = 0;
  std::int64_t lease_changes = 0;
  std::int64_t publishing_faults = 0;
  std::map<std::string, std::int64_t> rows;
};

/// Threads: one at a time; runs of different seeds share nothing.
class Simulation final : private relay::Observer {
 public:
  explicit Simulation(const Plan& plan);
  ~Simulation() override;

  Outcome run();

 private:
  struct Node;
  enum class Fault : std::uint8_t {
    kill,
    pause,
    disconnect,
    broker_down,
    broker_full,
    broker_missing,
    lose_replies,
    late_bytes,
    slow_network,
    store_busy,
    store_full,
    clock_step,
    join,
    leave,
    resize,
    poison,
    reject,
    retry_parked,
    discard_parked,
    republish,
    count,
  };

  void start_node();
  void crash(Node& node);
  void drive(Node& node);
  void deliver(int node, std::uint64_t life, const Answer& answer);
  void schedule(Node& node);
  void interrupt(Node& node);
  void pause(Node& node, Time length);

  void append_some();
  void plan_next_fault();
  void strike(Fault fault);
  void heal();
  void run_until(Time limit);
  void check_liveness();
  void note(const std::string& what);
  std::string describe() const;
  void on_incident(const relay::Incident& incident) override;

  Node* any_node();

  const Plan plan_;
  World world_;
  Time clock_step_ = 0;
  Truth truth_;
  SimClock host_clock_;
  ModelStore store_;
  SimBroker broker_;
  StoreFaults store_faults_;
  RelayOptions options_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> graveyard_;
  int next_node_ = 0;
  int nesting_ = 0;
  double kill_chance_ = 0;
  double pause_chance_ = 0;
  bool healing_ = false;
  Outcome outcome_;
};

std::string_view to_string(relay::Mutation mutation) noexcept;

}  // namespace stela::sim
