// Simulated processes that set alarms and let them ring, by the clock of their host.
#include "mutants/mutant.hpp"
#include "projections/alarms.hpp"
#include "simulation/story.hpp"
#include "simulation/turns.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::sim {
namespace {

using namespace std::chrono_literals;
using detail::TransactionScope;
using mutants::Mutant;
using test::AlarmCleared;
using test::AlarmHistory;
using test::Alarms;
using test::AlarmSet;
using test::append_alarm;

constexpr int jobs_of_an_author = 25;
constexpr int rounds_of_a_ringer = 20;
constexpr Time minute = 60 * second;

/// What ends a process, through handlers as well.
struct Crash final : ParticipantMissing {
  Crash() : ParticipantMissing{"the process was killed"} {}
};

/// What all processes share: chance, turns, the time, and the database.
struct Tower {
  explicit Tower(const StoryPlan& the_plan)
      : plan{the_plan}, chance{the_plan.seed * 0x9e3779b97f4a7c15 + 7}, turns{chance} {}

  std::string file() const { return folder.file("tower.db"); }
  void meet(std::string_view what) { ++story.met[what]; }

  const StoryPlan plan;
  Chance chance;
  Turns turns;
  test::TempDir folder = test::TempDir::in_memory();
  /// How long the host runs, and how far its wall clock was set ahead of that.
  Time time = 0;
  Time step = 0;
  int alarms = static_cast<int>(chance.between(2, 8));
  double kill = chance.happens(0.8) ? 0.012 : 0;
  bool fails = chance.happens(0.4);
  bool jumps = chance.happens(0.4);
  bool is_over = false;
  Story story;
};

/// The host's clocks, as one process reads them: whoever looks at the time may find that others had
/// their turn meanwhile.
class WatchedClock final : public Clock {
 public:
  WatchedClock(const Tower& tower, std::function<void()> on_look)
      : tower_{tower}, on_look_{std::move(on_look)} {}

  Timestamp now() const override {
    // A writer that begins has asked how long it runs, and holds the lock by now.
    if (!std::exchange(is_beginning_, false)) on_look_();
    return Timestamp{
        std::chrono::microseconds{SimClock::start_of_wall + tower_.time + tower_.step}};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    is_beginning_ = true;
    return std::chrono::steady_clock::time_point{std::chrono::microseconds{tower_.time + second}};
  }

 private:
  const Tower& tower_;
  const std::function<void()> on_look_;
  mutable bool is_beginning_ = false;
};

/// A process that dies now and then, and is started again.
class Person : public TransactionParticipant {
 public:
  explicit Person(Tower& tower) : tower_{tower} {}

  std::string_view name() const noexcept override { return "watch"; }
  std::string_view detail() const noexcept override { return {}; }
  void on_append(Transaction&, std::span<const StoredEvent>) override { interrupt(); }

 protected:
  /// What a process has, until it dies. What is dead stays open: it hands nothing back.
  struct Body {
    Body(Person& person, bool has_runner)
        : owner{person},
          clock{person.tower_,
                [this, &person] {
                  if (is_awake) person.interrupt();
                }},
          store{sqlite::open(person.tower_.file(),
                             {.durability = sqlite::Durability::relaxed, .clock = &clock})} {
      store.attach(person);
      if (!has_runner) return;
      projections.emplace(store);
      projections->add_process(Alarms{clock, [&person] { person.ring(); }},
                               {.start = ReactionStart::beginning,
                                .handling = {.max_attempts = 1'000'000, .retry_backoff = 1s}});
      runner.emplace(*projections, RunnerOptions{.lease_ttl = 5s, .clock_jump_limit = 5min});
    }
    ~Body() {
      runner.reset();
      store.detach(owner);
    }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    Person& owner;
    bool is_awake = false;
    WatchedClock clock;
    Store store;
    std::optional<Projections> projections;
    std::optional<Runner> runner;
  };

  /// `work` with a body that may be interrupted; false if it died of that.
  bool do_alive(bool has_runner, const std::function<void(Body&)>& work) {
    if (!body_) body_ = std::make_unique<Body>(*this, has_runner);
    try {
      body_->is_awake = true;
      work(*body_);
      body_->is_awake = false;
      return true;
    } catch (const Crash&) {
      body_->is_awake = false;
      dead_.push_back(std::move(body_));
      return false;
    }
  }

  /// Here the process may die. Others may get their turn, unless they would wait for its lock.
  void interrupt() {
    const bool is_inside = TransactionScope::is_open();
    if (!is_inside && !tower_.is_over && tower_.chance.happens(0.1)) {
      tower_.meet("turns of others inside a call");
      pass_time(tower_.chance.happens(0.1) ? 10 * second : second);
      tower_.turns.pass();
    }
    if (tower_.is_over || !tower_.chance.happens(is_inside ? tower_.kill : tower_.kill / 4)) return;
    tower_.meet(is_inside ? "kills inside a transaction" : "kills between calls");
    throw Crash{};
  }

  void pass_time(Time most) { tower_.time += tower_.chance.below(most); }

  Tower& tower_;

 private:
  /// Called by the handler of an alarm.
  void ring() {
    interrupt();
    if (!tower_.fails || tower_.is_over || !tower_.chance.happens(0.2)) return;
    tower_.meet("handlers that fail");
    if (tower_.chance.happens(0.2)) throw std::bad_alloc{};
    if (tower_.chance.happens(0.2)) throw ConcurrencyConflict{"alarm-0", "1", StreamVersion{2}};
    throw std::runtime_error{"it doesn't ring"};
  }

  std::unique_ptr<Body> body_;
  std::vector<std::unique_ptr<Body>> dead_;
};

/// Sets, moves and clears alarms; the host's clock is also its own.
class Author final : public Person {
 public:
  using Person::Person;

  void live() {
    for (int i = 0; i < jobs_of_an_author; ++i) {
      do_alive(false, [&](Body& body) { do_one(body); });
      pass_time(tower_.chance.happens(0.2) ? 5 * minute : 20 * second);
      tower_.turns.pass();
    }
  }

 private:
  void do_one(Body& body) {
    Chance& chance = tower_.chance;
    if (tower_.jumps && chance.happens(0.15)) return jump();
    const int key = static_cast<int>(chance.below(tower_.alarms));
    if (chance.happens(0.3)) {
      tower_.meet("alarms that are cleared");
      return append_alarm(body.store, key, AlarmCleared{});
    }
    const Time wall = SimClock::start_of_wall + tower_.time + tower_.step;
    tower_.meet("alarms that are set or moved");
    append_alarm(body.store, key, AlarmSet{wall + chance.between(-30 * second, 10 * minute)});
  }

  void jump() {
    tower_.meet("jumps of the clock");
    const Time by = tower_.chance.between(2 * second, 15 * minute);
    tower_.step += tower_.chance.happens(0.5) ? by : -by;
  }
};

class Ringer final : public Person {
 public:
  using Person::Person;

  void live() {
    for (int i = 0; i < rounds_of_a_ringer; ++i) {
      do_alive(true, [&](Body& body) {
        const RunnerTick tick = body.runner->run_once();
        if (tick.elsewhere_count > 0) tower_.meet("alarms left to another process");
        if (tick.timers_fired > 0) tower_.meet("rounds in which alarms ring");
      });
      pass_time(20 * second);
      tower_.turns.pass();
    }
  }

  /// Everything that is set rings.
  void end() {
    for (int i = 0; i < 3; ++i) {
      tower_.time += 24 * 60 * minute;
      do_alive(true, [](Body& body) { body.runner->run_once(); });
    }
  }
};

/// Faults in what the product's statements do, as triggers: a process of Stela's meets them as if
/// they were its own.
std::string_view fault_of(Mutant mutant) {
  switch (mutant) {
    case Mutant::alarm_is_kept:
      // Its removal isn't committed with what it leads to.
      return "CREATE TRIGGER fault AFTER DELETE ON projection_timers WHEN OLD.generation > 0 BEGIN "
             "INSERT INTO projection_timers VALUES (OLD.process, OLD.key, OLD.kind, OLD.version, "
             "-1, OLD.state, OLD.due_at, OLD.wake_at, 0, '', '', OLD.set_at, OLD.correlation_id, "
             "OLD.causation_id, OLD.metadata, OLD.payload); END";
    case Mutant::alarm_is_early:
      return "CREATE TRIGGER fault AFTER INSERT ON projection_timers BEGIN "
             "UPDATE projection_timers SET due_at = due_at - 5000000, wake_at = wake_at - 5000000 "
             "WHERE process = NEW.process AND key = NEW.key AND kind = NEW.kind; END";
    case Mutant::move_is_lost:
      return "CREATE TRIGGER fault BEFORE UPDATE OF due_at ON projection_timers BEGIN "
             "SELECT RAISE(IGNORE); END";
    case Mutant::clear_is_lost:
      return "CREATE TRIGGER fault BEFORE DELETE ON projection_timers WHEN OLD.due_at > "
             "(SELECT recorded_at FROM events ORDER BY sequence DESC LIMIT 1) BEGIN "
             "SELECT RAISE(IGNORE); END";
    case Mutant::checkpoint_runs_ahead:
      return "CREATE TRIGGER fault AFTER UPDATE OF owner ON projections "
             "WHEN NEW.owner IS NOT NULL BEGIN UPDATE projections SET position = "
             "(SELECT coalesce(max(sequence), 0) FROM events) WHERE name = NEW.name; END";
    default:
      return {};
  }
}

/// Makes the tables, and the fault of a mutant in them.
void found(Tower& tower) {
  class Founder final : public Person {
   public:
    using Person::Person;
    void make_tables() {
      do_alive(true, [](Body& body) { body.is_awake = false; });
    }
  };
  Founder{tower}.make_tables();
  const std::string_view fault = fault_of(tower.plan.mutant);
  if (!fault.empty()) test::RawSqlite{tower.file()}.run(std::string{fault});
}

std::uint64_t rung_hash(EventStore& store) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const StoredEvent& event : store.read_all()) {
    for (const char c : event.payload) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return hash;
}

std::string find_contradiction(const AlarmHistory& history) {
  if (!history.flaws().empty()) return history.flaws().front();
  if (history.pending() == 0) return {};
  return std::to_string(history.pending()) + " alarms never rang";
}

Story ring_for_a_while(const StoryPlan& plan) {
  Tower tower{plan};
  found(tower);
  std::vector<std::unique_ptr<Author>> authors;
  std::vector<std::unique_ptr<Ringer>> ringers;
  std::vector<std::function<void()>> lives;
  for (auto left = tower.chance.between(1, 2); left > 0; --left) {
    authors.push_back(std::make_unique<Author>(tower));
    lives.emplace_back([&author = *authors.back()] { author.live(); });
  }
  for (auto left = tower.chance.between(1, 3); left > 0; --left) {
    ringers.push_back(std::make_unique<Ringer>(tower));
    lives.emplace_back([&ringer = *ringers.back()] { ringer.live(); });
  }
  tower.turns.run(lives);
  tower.is_over = true;
  Ringer last{tower};
  last.end();
  Store store = sqlite::open(tower.file());
  tower.story.contradiction = find_contradiction(AlarmHistory{store, !tower.fails && !tower.jumps});
  tower.story.hash = rung_hash(store);
  return tower.story;
}

constexpr std::string_view ringer_demands[] = {
    "kills inside a transaction",   "kills between calls",     "turns of others inside a call",
    "alarms that are set or moved", "alarms that are cleared", "alarms left to another process",
    "rounds in which alarms ring",  "handlers that fail",      "jumps of the clock"};

constexpr StoryMutant ringer_mutants[] = {
    {Mutant::alarm_is_kept, "rang though it wasn't set"},
    {Mutant::alarm_is_early, "rang too early"},
    {Mutant::move_is_lost, "rang though it wasn't set"},
    {Mutant::clear_is_lost, "rang though it wasn't set"},
    {Mutant::checkpoint_runs_ahead, "never rang"},
};

}  // namespace

const StoryKind timers{ring_for_a_while, ringer_demands, ringer_mutants};

}  // namespace stela::sim
