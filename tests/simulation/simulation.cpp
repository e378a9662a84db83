#include "simulation/simulation.hpp"

#include "simulation/node.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace stela::sim {

using relay::Incident;

namespace {

RelayOptions draw_options(Chance& chance, const Plan& plan) {
  RelayOptions options;
  options.lease_ttl = std::chrono::milliseconds{chance.between(5'000, 20'000)};
  options.lease_renew = options.lease_ttl / 3;
  options.heartbeat_ttl = options.lease_ttl + std::chrono::milliseconds{5'000};
  options.publish_timeout = options.lease_ttl / 4;
  options.idle_backoff = std::chrono::milliseconds{plan.calm ? chance.between(500, 1'000)
                                                             : chance.between(1'000, 8'000)};
  options.batch_size = static_cast<int>(chance.between(1, 20));
  options.window = static_cast<int>(chance.between(1, 60));
  options.retry_backoff = std::chrono::milliseconds{chance.between(200, 2'000)};
  options.retry_backoff_max = std::chrono::milliseconds{10'000};
  options.max_attempts = static_cast<int>(chance.between(2, 5));
  if (plan.line.bandwidth > 0) options.max_in_flight_bytes = chance.between(256, 1'024) * 1'024;
  options.on_poison = chance.happens(0.85) ? OnPoison::park : OnPoison::skip;
  return options;
}

StreamLimits draw_limits(Chance& chance) {
  // The fence must not need the window: in half of the runs it is next to nothing.
  return {.duplicate_window = chance.happens(0.5) ? 100 * ms : 120 * second,
          .duplicates_first = chance.happens(0.5)};
}

}  // namespace

Simulation::Simulation(const Plan& plan)
    : plan_{plan},
      world_{plan.seed},
      truth_{plan.fence},
      host_clock_{world_, 0},
      store_{host_clock_, truth_, plan.partitions, world_.chance, plan.mutant},
      shared_{store_, host_clock_, plan.partitions, plan.fence, plan.sqlite},
      broker_{world_, truth_, plan.fence, draw_limits(world_.chance), plan.line},
      options_{draw_options(world_.chance, plan)} {
  truth_.know_store(shared_.id());
  host_clock_.share_step(&clock_step_);
  kill_chance_ = world_.chance.happens(0.7) ? 0.0002 : 0;
  pause_chance_ = world_.chance.happens(0.7) ? 0.0002 : 0;
  if (plan.calm) kill_chance_ = pause_chance_ = 0;
  broker_.longest_read = options_.publish_timeout.count() * ms / 2;
  broker_.clients_queue = plan.mutant == Mutant::read_backs_one_by_one;
  broker_.clients_buffer = plan.mutant == Mutant::reconnect_buffer;
}

Simulation::~Simulation() = default;

void Simulation::note(const std::string& what) {
  if (plan_.trace) {
    std::printf("%12.6f  %s\n", static_cast<double>(world_.now()) / second, what.c_str());
  }
}

// --- nodes

void Simulation::start_node() {
  const double drift = static_cast<double>(world_.chance.between(-200, 200)) * 1e-6;
  count_means();
  auto node = std::make_unique<Node>(*this, next_node_++, drift);
  note(name_of(node->number) + " starts");
  node->worker->start();
  Node& started = *node;
  nodes_.push_back(std::move(node));
  plan_drive(started, world_.chance.between(1, second));
}

void Simulation::crash(Node& node) {
  note(name_of(node.number) + " dies");
  count_means();
  if (!node.leaving && !healing_) {
    world_.after(world_.chance.between(100 * ms, 10 * second), [this] {
      const bool wanted = static_cast<int>(nodes_.size()) < plan_.workers;
      if (wanted && restored_ < 0 && !healing_) start_node();
    });
  }
  node.alive = false;
  node.worker.reset();
  node.publisher.disconnect();
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return n.get() == &node; });
  if (found == nodes_.end()) return;
  // Whoever is still in one of its calls needs the object until it returns.
  graveyard_.push_back(std::move(*found));
  nodes_.erase(found);
}

void Simulation::deliver(int number, const Answer& answer) {
  if (Node* const node = find(number)) {
    count(answer, number);
    node->answers.push_back(answer);
    plan_drive(*node, 0);
  }
}

Simulation::Node* Simulation::find(int number) {
  for (auto& node : nodes_) {
    if (node->number == number) return node.get();
  }
  return nullptr;
}

/// Answers that arrive at one time are handed over together, as a driver does.
void Simulation::plan_drive(Node& node, Time delay) {
  if (delay == 0 && std::exchange(node.drive_planned, true)) return;
  world_.after(delay, [this, number = node.number, at_once = delay == 0] {
    Node* const found = find(number);
    if (found == nullptr) return;
    if (at_once) found->drive_planned = false;
    drive(*found);
  });
}

std::string Simulation::describe(const Node& node) {
  const mutants::Worker& worker = *node.worker;
  return name_of(node.number) + " holds " + std::to_string(worker.owned_partitions()) + " of " +
         std::to_string(worker.wanted_partitions()) + " wanted, " +
         std::to_string(worker.active_workers()) + " workers, broker " +
         to_string(worker.broker_status());
}

/// A call blocked: what happens meanwhile is heard of afterwards.
void Simulation::wait_for_socket(Node& node) {
  if (std::exchange(node.waits_for_socket, true)) return;
  world_.at(node.clock.here(), [this, number = node.number] {
    Node* const found = find(number);
    if (found == nullptr) return;
    found->waits_for_socket = false;
    drive(*found);
  });
}

void Simulation::drive(Node& node) {
  if (!node.alive) return;
  if (node.clock.is_blocked()) return wait_for_socket(node);
  if (node.busy) {
    node.poked = true;
    return;
  }
  node.busy = true;
  try {
    do {
      node.poked = false;
      for (const Answer& answer : std::exchange(node.answers, {})) node.worker->on_answer(answer);
      node.worker->run_due();
    } while ((node.poked || !node.answers.empty()) && !node.clock.is_blocked());
    node.busy = false;
    if (plan_.trace && node.worker->owned_partitions() != node.owned) {
      node.owned = node.worker->owned_partitions();
      note(describe(node));
    }
    if (node.worker->is_stopped()) return crash(node);
    schedule(node);
    if (node.clock.is_blocked()) wait_for_socket(node);
  } catch (const Killed&) {
    node.busy = false;
    crash(node);
  }
}

void Simulation::schedule(Node& node) {
  const relay::Steady deadline = node.worker->deadline();
  if (deadline == relay::never) return;
  // An alarm that comes too early finds nothing to do and sets the next one.
  const Time at = node.clock.here() + node.clock.until(deadline);
  if (node.alarm_at >= world_.now() && node.alarm_at <= at) return;
  node.alarm_at = at;
  const std::uint64_t alarm = ++node.alarm;
  world_.at(at, [this, number = node.number, alarm] {
    Node* const found = find(number);
    if (found == nullptr || found->alarm != alarm) return;
    found->alarm_at = -1;
    drive(*found);
  });
}

void Simulation::interrupt(Node& node) {
  if (healing_) return;
  if (plan_.is_scripted()) {
    const auto fault = scripted(Opportunity::call);
    if (fault == ScriptedFault::Kind::kill) throw Killed{};
    if (fault == ScriptedFault::Kind::pause) pause(node, 2 * options_.lease_ttl.count() * ms);
    return;
  }
  Chance& chance = world_.chance;
  if (chance.happens(kill_chance_) && outcome_.faults < plan_.most_faults) {
    ++outcome_.faults;
    allow_duplicates();
    note(name_of(node.number) + " is killed in a call");
    throw Killed{};
  }
  if (nesting_ < 3 && chance.happens(pause_chance_) && outcome_.faults < plan_.most_faults) {
    ++outcome_.faults;
    pause(node, chance.between(ms, 3 * options_.lease_ttl.count() * ms));
  }
}

/// Time passes for everybody but this node, which is in the middle of a call.
void Simulation::pause(Node& node, Time length) {
  note(name_of(node.number) + " is paused for " + std::to_string(length / ms) + " ms");
  allow_duplicates();
  ++nesting_;
  const Time until = world_.now() + length;
  while (world_.step(until)) {
  }
  --nesting_;
  note(name_of(node.number) + " goes on");
}

bool Simulation::is_anyone_busy() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->busy || !node->answers.empty(); });
}

Simulation::Node* Simulation::any_node() {
  if (nodes_.empty()) return nullptr;
  return nodes_[static_cast<std::size_t>(
                    world_.chance.below(static_cast<std::int64_t>(nodes_.size())))]
      .get();
}

// --- what happens

void Simulation::append_some() {
  if (healing_) return;
  Chance& chance = world_.chance;
  const std::int64_t count = chance.between(1, 12);
  for (std::int64_t i = 0; i < count; ++i) {
    append(static_cast<int>(chance.below(plan_.streams)), chance.happens(0.9));
  }
  // A lost wake-up is harmless: some aren't given.
  if (chance.happens(0.8)) wake_all();
  const double mean = static_cast<double>(count) / plan_.appends_per_second;
  world_.after(chance.between(0, static_cast<Time>(2 * mean * second)), [this] { append_some(); });
}

void Simulation::append(int stream, bool publishes) {
  shared_.append(stream, publishes, world_.chance.between(2, plan_.largest_payload));
  // Between the commit and what comes after it, the process may die.
  store_.enqueue_late(!world_.chance.happens(0.01));
}

void Simulation::wake_all() {
  for (auto& node : nodes_) {
    plan_drive(*node, world_.chance.between(1, ms));
  }
}

// --- what was met

void Simulation::count(const Answer& answer, int number) {
  const auto met = [&](Row row) { ++outcome_.rows[static_cast<std::size_t>(row)]; };
  const Node* const node = find(number);
  if (node != nullptr && answer.session != node->publisher.session()) return met(Row::late_reply);
  switch (answer.kind) {
    case Answer::Kind::stored:
      return met(Row::ack);
    case Answer::Kind::stored_before:
      return met(answer.detail == "duplicate"        ? Row::duplicate
                 : answer.detail == "wrong sequence" ? Row::wrong_sequence
                                                     : Row::wrong_id);
    case Answer::Kind::disconnected:
      return met(Row::disconnected);
    case Answer::Kind::refused:
      return met(Row::refused);
    case Answer::Kind::rejected:
      return met(Row::rejected);
    case Answer::Kind::full:
      return met(Row::full);
    case Answer::Kind::misconfigured:
      return met(Row::misconfigured);
    case Answer::Kind::read_back:
      // Found from the last known message on: that one isn't new.
      if (answer.last_sequence == 0 && answer.first_sequence > 1) return met(Row::found_aged_out);
      return met(answer.found.size() > 1 ? Row::found_ours : Row::found_nothing_new);
    case Answer::Kind::connected:
    case Answer::Kind::alive:
    case Answer::Kind::unknown:
      return;
  }
}

void Simulation::on_incident(const Incident& incident) {
  world_.mix(static_cast<std::uint64_t>(incident.kind) * 131 +
             static_cast<std::uint64_t>(incident.partition.number));
  if (plan_.trace) {
    note("  " + std::string{relay::to_string(incident.kind)} + " " + incident.partition.label() +
         " event " + std::to_string(incident.sequence.value()) + ": " + incident.text);
  }
  if (incident.kind == Incident::Kind::publish_failed && incident.text.starts_with("no answer")) {
    ++outcome_.rows[static_cast<std::size_t>(Row::timed_out)];
  }
}

void Simulation::count_means() {
  const auto passed = static_cast<double>(world_.now() - mean_since_);
  mean_since_ = world_.now();
  outcome_.worker_time += passed * static_cast<double>(nodes_.size());
  outcome_.partition_time += passed * static_cast<double>(store_.partitions().size());
}

// --- the story

void Simulation::run_until(Time limit) {
  while (world_.step(limit)) {
  }
}

Outcome Simulation::run() {
  try {
    for (int i = 0; i < plan_.workers; ++i) start_node();
    if (plan_.is_scripted()) {
      follow_script();
    } else {
      append_some();
      plan_next_fault();
      plan_next_outage();
      watch_progress();
    }
    watch();
    if (plan_.restore) plan_restore();
    run_until(plan_.faults_until);
    if (restored_ >= 0) run_until(restored_ + 2 * latest_of_all);
    heal();
    recover();
    if (restored_ >= 0) {
      check_restored();
    } else {
      check_liveness();
    }
  } catch (const Violation& violation) {
    note("VIOLATION of invariant " + std::to_string(violation.invariant) + ": " + violation.what);
    outcome_.violation = violation;
  }
  count_means();
  outcome_.simulated = world_.now();
  outcome_.hash = world_.hash();
  outcome_.appended = truth_.appended();
  outcome_.stored = truth_.stored();
  outcome_.lease_changes = truth_.changes_of_owner();
  outcome_.publishing_faults = broker_.hits;
  return outcome_;
}

}  // namespace stela::sim
