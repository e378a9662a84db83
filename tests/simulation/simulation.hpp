// One seed's story: workers, appends and faults, then everything heals and must come right.
#pragma once

#include "mutants/mutant.hpp"
#include "simulation/faulty_store.hpp"
#include "simulation/model_store.hpp"
#include "simulation/outcome.hpp"
#include "simulation/plan.hpp"
#include "simulation/sim_broker.hpp"
#include "simulation/sim_publisher.hpp"
#include "simulation/sqlite_twin.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stela::sim {

/// Threads: one at a time; runs of different seeds share nothing.
class Simulation final : private relay::Observer {
 public:
  explicit Simulation(const Plan& plan);
  ~Simulation() override;

  Outcome run();

 private:
  struct Node;
  void start_node();
  void crash(Node& node);
  static std::string describe(const Node& node);
  void drive(Node& node);
  void wait_for_socket(Node& node);
  Node* find(int number);
  void plan_drive(Node& node, Time delay);
  void deliver(int node, const Answer& answer);
  void schedule(Node& node);
  void interrupt(Node& node);
  void pause(Node& node, Time length);
  Node* any_node();
  bool is_anyone_busy() const;

  void append_some();
  void append(int stream, bool publishes);
  void wake_all();
  void count(const Answer& answer, int node);
  void on_incident(const relay::Incident& incident) override;
  void note(const std::string& what);

  // The nemesis.
  void plan_next_fault();
  void strike(Fault fault);
  void allow_duplicates();
  void strike_process(Fault fault, Time length);
  void strike_broker(Fault fault, Time length);
  void operate(Fault fault, Time length);
  std::optional<ScriptedFault::Kind> scripted(Opportunity opportunity);
  void follow_script();

  // Streams that fail by themselves, and whether the others get on.
  void strike_stream(PartitionId partition, Time length);
  void plan_next_outage();
  void excuse(PartitionId partition, Time until);
  Time patience() const;
  Time trip() const;
  Time look_time() const;
  void watch_progress();

  // What an operator has to be called for.
  void lose_tail();
  void lose_tail_of(PartitionId partition);
  void make_next_unreadable();
  void let_a_foreigner_write();
  void age_out();
  void plan_restore();
  void restore();
  void watch();
  void on_stop(PartitionId partition, const std::string& reason);
  void adopt(PartitionId partition);
  PartitionId any_partition();
  bool can_be_struck(PartitionId partition) const;

  void run_until(Time limit);
  void heal();
  void recover();
  Time longest_recovery() const;
  Time longest_aftermath() const;
  void check_liveness();
  void check_restored() const;
  void check_stored_once(PartitionId partition, std::uint64_t sequence);

  const Plan plan_;
  World world_;
  Time clock_step_ = 0;
  Truth truth_;
  SimClock host_clock_;
  /// What is asked about the store; what is done to it goes through `shared_`.
  ModelStore store_;
  SharedStore shared_;
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
  Time restored_ = -1;
  Time mean_since_ = 0;
  void count_means();
  /// Partitions that must stop, and why; and what the broker lost of them.
  std::map<PartitionId, std::string> expected_stops_;
  std::map<PartitionId, std::vector<GlobalSequence>> lost_;
  std::set<PartitionId> known_stops_;
  std::set<PartitionId> closed_;
  std::shared_ptr<const ModelStore::Copy> copy_;
  /// Of a partition: what was stored of it, and since when it stands still; later than now if it
  /// may stand still until then.
  struct Progress {
    std::int64_t stored = 0;
    Time since = 0;
  };
  std::map<PartitionId, Progress> progress_;
  Outcome outcome_;
};

}  // namespace stela::sim
