#include "simulation/simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace stela::sim {

using relay::Incident;
using relay::Mutation;

namespace {

std::string name_of(int node) {
  std::string name{"w"};
  return name.append(std::to_string(node));
}

}  // namespace

/// A process with a worker in it.
struct Simulation::Node {
  Node(Simulation& sim, int the_number, double drift)
      : number{the_number},
        clock{sim.world_, drift},
        options{sim.options_},
        store{sim.store_.port(), sim.store_faults_, sim.world_.chance,
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
};

namespace {

constexpr Time grace = 90 * second;

RelayOptions draw_options(Chance& chance) {
  RelayOptions options;
  options.lease_ttl = std::chrono::milliseconds{chance.between(5'000, 20'000)};
  options.lease_renew = options.lease_ttl / 3;
  options.heartbeat_ttl = options.lease_ttl + std::chrono::milliseconds{5'000};
  options.publish_timeout = options.lease_ttl / 4;
  options.idle_backoff = std::chrono::milliseconds{chance.between(1'000, 8'000)};
  options.batch_size = static_cast<int>(chance.between(1, 20));
  options.window = static_cast<int>(chance.between(1, 60));
  options.retry_backoff = std::chrono::milliseconds{chance.between(200, 2'000)};
  options.retry_backoff_max = std::chrono::milliseconds{10'000};
  options.max_attempts = static_cast<int>(chance.between(2, 5));
  return options;
}

StreamLimits draw_limits(Chance& chance) {
  // The fence must not need the window: in half of the runs it is next to nothing.
  return {.duplicate_window = chance.happens(0.5) ? 100 * ms : 120 * second,
          .duplicates_first = chance.happens(0.5)};
}

}  // namespace

Plan Plan::draw(std::uint64_t seed) {
  Chance chance{seed * 0x9e3779b97f4a7c15 + 1};
  Plan plan{.seed = seed};
  const auto kind = chance.below(10);
  plan.fence = kind < 7 ? Fence::stream : kind < 9 ? Fence::subject : Fence::none;
  plan.workers = static_cast<int>(chance.between(2, 5));
  const int counts[] = {1, 2, 4, 16};
  plan.partitions = counts[chance.below(4)];
  plan.streams = static_cast<int>(chance.between(3, 60));
  plan.faults_until = chance.between(120, 900) * second;
  return plan;
}

std::string_view to_string(Mutation mutation) noexcept {
  switch (mutation) {
    case Mutation::none:
      return "none";
    case Mutation::skip_failed_row:
      return "skip_failed_row";
    case Mutation::empty_list_means_all:
      return "empty_list_means_all";
    case Mutation::mark_before_ack:
      return "mark_before_ack";
    case Mutation::mark_on_timeout:
      return "mark_on_timeout";
    case Mutation::no_epoch_in_mark:
      return "no_epoch_in_mark";
    case Mutation::no_read_back_at_acquisition:
      return "no_read_back_at_acquisition";
    case Mutation::dedup_only:
      return "dedup_only";
    case Mutation::fence_on_wrong_sequence:
      return "fence_on_wrong_sequence";
    case Mutation::no_park_behind:
      return "no_park_behind";
  }
  return "unknown";
}

Simulation::Simulation(const Plan& plan)
    : plan_{plan},
      world_{plan.seed},
      truth_{plan.fence, "0190a000-0000-7000-8000-000000000001"},
      host_clock_{world_, 0},
      store_{host_clock_, truth_, plan.partitions, world_.chance},
      broker_{world_, truth_, plan.fence, draw_limits(world_.chance)},
      options_{draw_options(world_.chance)} {
  host_clock_.share_step(&clock_step_);
  kill_chance_ = world_.chance.happens(0.7) ? 0.0002 : 0;
  pause_chance_ = world_.chance.happens(0.7) ? 0.0002 : 0;
}

Simulation::~Simulation() = default;

void Simulation::note(const std::string& what) {
  if (plan_.trace) {
    std::printf("%12.6f  %s\n", static_cast<double>(world_.now()) / second, what.c_str());
  }
}

void Simulation::on_incident(const Incident& incident) {
  world_.mix(static_cast<std::uint64_t>(incident.kind) * 131 +
             static_cast<std::uint64_t>(incident.partition.number));
  if (!plan_.trace) return;
  note("  " + std::string{relay::to_string(incident.kind)} + " " + incident.partition.label() +
       " event " + std::to_string(incident.sequence.value()) + ": " + incident.text);
}

// --- nodes

void Simulation::start_node() {
  const double drift = static_cast<double>(world_.chance.between(-200, 200)) * 1e-6;
  auto node = std::make_unique<Node>(*this, next_node_++, drift);
  note(name_of(node->number) + " starts");
  node->worker->start();
  Node& started = *node;
  nodes_.push_back(std::move(node));
  world_.after(world_.chance.between(0, second), [this, number = started.number] {
    for (auto& n : nodes_) {
      if (n->number == number) return drive(*n);
    }
  });
}

void Simulation::crash(Node& node) {
  note(name_of(node.number) + " dies");
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

void Simulation::deliver(int number, std::uint64_t, const Answer& answer) {
  for (auto& node : nodes_) {
    if (node->number != number) continue;
    node->answers.push_back(answer);
    return drive(*node);
  }
}

void Simulation::drive(Node& node) {
  if (!node.alive) return;
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
    } while (node.poked || !node.answers.empty());
    node.busy = false;
    if (node.worker->is_stopped()) return crash(node);
    schedule(node);
  } catch (const Killed&) {
    node.busy = false;
    crash(node);
  }
}

void Simulation::schedule(Node& node) {
  const relay::Steady deadline = node.worker->deadline();
  if (deadline == relay::never) return;
  const std::uint64_t alarm = ++node.alarm;
  world_.after(node.clock.until(deadline), [this, number = node.number, alarm] {
    for (auto& n : nodes_) {
      if (n->number == number && n->alarm == alarm) return drive(*n);
    }
  });
}

void Simulation::interrupt(Node& node) {
  if (healing_) return;
  Chance& chance = world_.chance;
  if (chance.happens(kill_chance_) && outcome_.faults < plan_.most_faults) {
    ++outcome_.faults;
    ++outcome_.publishing_faults;
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
  truth_.allow_duplicates(options_.window);
  ++nesting_;
  const Time until = world_.now() + length;
  while (world_.step(until)) {
  }
  --nesting_;
  note(name_of(node.number) + " goes on");
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
    store_.append(static_cast<int>(chance.below(plan_.streams)), chance.happens(0.9));
  }
  // A lost wake-up is harmless: some aren't given.
  if (chance.happens(0.8)) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = *nodes_[i];
      node.worker->wake();
      world_.after(chance.between(0, ms), [this, number = node.number] {
        for (auto& n : nodes_) {
          if (n->number == number) return drive(*n);
        }
      });
    }
  }
  const double mean = static_cast<double>(count) / plan_.appends_per_second;
  world_.after(chance.between(0, static_cast<Time>(2 * mean * second)), [this] { append_some(); });
}

void Simulation::plan_next_fault() {
  if (healing_) return;
  world_.after(world_.chance.between(second, 20 * second), [this] {
    if (healing_) return;
    const auto fault =
        static_cast<Fault>(world_.chance.below(static_cast<std::int64_t>(Fault::count)));
    const bool wanted = (plan_.kinds >> static_cast<std::uint32_t>(fault) & 1) != 0;
    if (wanted && outcome_.faults < plan_.most_faults) {
      ++outcome_.faults;
      world_.mix(static_cast<std::uint64_t>(fault));
      strike(fault);
    }
    plan_next_fault();
  });
}

void Simulation::strike(Fault fault) {
  Chance& chance = world_.chance;
  const Time length = chance.between(100 * ms, 20 * second);
  const auto later = [&](std::function<void()> undo) { world_.after(length, std::move(undo)); };
  switch (fault) {
    case Fault::kill:
      if (Node* const node = any_node(); node != nullptr && !node->busy) {
        truth_.allow_duplicates(options_.window);
        crash(*node);
        later([this] {
          if (static_cast<int>(nodes_.size()) < plan_.workers) start_node();
        });
      }
      return;
    case Fault::pause:
      pause_chance_ = pause_chance_ > 0 ? pause_chance_ : 0.0005;
      return;
    case Fault::disconnect:
      note("a connection breaks");
      ++outcome_.publishing_faults;
      truth_.allow_duplicates(options_.window);
      if (Node* const node = any_node()) node->publisher.break_connection();
      return;
    case Fault::broker_down:
      note("the broker goes down");
      ++outcome_.publishing_faults;
      truth_.allow_duplicates(options_.window * plan_.workers);
      broker_.go_down();
      return later([this] { broker_.come_back(); });
    case Fault::broker_full:
      note("the broker is full");
      broker_.set_full(true);
      return later([this] { broker_.set_full(false); });
    case Fault::broker_missing:
      note("the streams are missing");
      broker_.set_missing(true);
      return later([this] { broker_.set_missing(false); });
    case Fault::lose_replies:
      note("replies get lost");
      ++outcome_.publishing_faults;
      truth_.allow_duplicates(options_.window * plan_.workers * 20);
      broker_.faults.lose_reply = 0.02;
      return later([this] { broker_.faults.lose_reply = 0; });
    case Fault::late_bytes:
      broker_.faults.late_bytes = 0.8;
      return later([this] { broker_.faults.late_bytes = 0; });
    case Fault::slow_network:
      note("the network is slow");
      ++outcome_.publishing_faults;
      truth_.allow_duplicates(options_.window * plan_.workers * 20);
      broker_.faults.slowest = chance.between(10 * ms, 2 * options_.publish_timeout.count() * ms);
      return later([this] { broker_.faults.slowest = 2 * ms; });
    case Fault::store_busy:
      store_faults_.busy = 0.1;
      return later([this] { store_faults_.busy = 0; });
    case Fault::store_full:
      store_faults_.full = 0.3;
      return later([this] { store_faults_.full = 0; });
    case Fault::clock_step:
      clock_step_ += chance.between(-3600, 3600) * second;
      note("the clock is set to " + std::to_string(clock_step_ / second) + " s ahead");
      return;
    case Fault::join:
      if (nodes_.size() < 8) start_node();
      return;
    case Fault::leave:
      if (nodes_.size() < 2) return;
      if (Node* const node = any_node(); node != nullptr && !node->busy) {
        note(name_of(node->number) + " is asked to leave");
        node->leaving = true;
        node->worker->stop();
        drive(*node);
      }
      return;
    case Fault::resize: {
      const int counts[] = {1, 2, 4, 16};
      const int count = counts[chance.below(4)];
      note("resize to " + std::to_string(count));
      store_.resize(count, "sim");
      return;
    }
    case Fault::poison:
      broker_.too_large.insert(store_.last_sequence() + chance.between(1, 5));
      return;
    case Fault::reject: {
      const std::int64_t sequence = store_.last_sequence() + chance.between(1, 5);
      broker_.rejected.insert(sequence);
      return later([this, sequence] { broker_.rejected.erase(sequence); });
    }
    case Fault::retry_parked:
      if (const auto parked = store_.any_parked()) {
        note("retry of stream " + std::to_string(parked->first));
        if (chance.happens(0.5)) broker_.too_large.clear();
        store_.retry(parked->first, parked->second, "sim");
      }
      return;
    case Fault::discard_parked:
      if (const auto parked = store_.any_parked()) store_.discard(parked->second, "sim");
      return;
    case Fault::republish: {
      if (store_.last_sequence() == 0) return;
      const GlobalSequence sequence{chance.between(1, store_.last_sequence())};
      store_.republish({&sequence, 1}, "sim");
      return;
    }
    case Fault::count:
      return;
  }
}

void Simulation::run_until(Time limit) {
  while (world_.step(limit)) {
  }
}

void Simulation::heal() {
  note("everything heals");
  healing_ = true;
  kill_chance_ = pause_chance_ = 0;
  store_faults_ = {};
  broker_.faults = {};
  broker_.set_full(false);
  broker_.set_missing(false);
  broker_.rejected.clear();
  if (!broker_.is_up()) broker_.come_back();
  if (nodes_.empty()) start_node();
  for (auto& node : nodes_) drive(*node);
}

void Simulation::check_liveness() {
  if (plan_.trace && truth_.missing() != 0) {
    for (const auto& node : nodes_) std::printf("%s", node->worker->describe().c_str());
    for (const PartitionId id : store_.partitions()) {
      std::printf("%s: %s\n", id.label().c_str(), store_.describe(id).c_str());
    }
  }
  if (!store_.stopped().empty()) {
    throw Violation{11, store_.stopped().front().label() + " is stopped"};
  }
  if (truth_.missing() != 0) {
    throw Violation{11, std::to_string(truth_.missing()) + " events aren't through " +
                            std::to_string(grace / second) + " s after the last fault, " +
                            truth_.first_missing() + " is the first"};
  }
}

Outcome Simulation::run() {
  try {
    for (int i = 0; i < plan_.workers; ++i) start_node();
    append_some();
    plan_next_fault();
    run_until(plan_.faults_until);
    heal();
    if (plan_.trace) {
      for (int i = 1; i <= 9; ++i) {
        world_.at(world_.now() + i * 10 * second, [this] {
          for (const PartitionId id : store_.partitions()) {
            note(id.label() + ": " + store_.describe(id));
          }
        });
      }
    }
    run_until(world_.now() + grace);
    check_liveness();
  } catch (const Violation& violation) {
    note("VIOLATION of invariant " + std::to_string(violation.invariant) + ": " + violation.what);
    outcome_.violation = violation;
  }
  outcome_.simulated = world_.now();
  outcome_.hash = world_.hash();
  outcome_.appended = truth_.appended();
  outcome_.stored = truth_.stored();
  return outcome_;
}

}  // namespace stela::sim
