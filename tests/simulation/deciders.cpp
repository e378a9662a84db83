// Simulated processes that decide on overlapping boundaries of one database.
#include "simulation/faulty_store.hpp"
#include "simulation/flawed_log.hpp"
#include "simulation/registrar.hpp"
#include "simulation/story.hpp"
#include "simulation/turns.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/decision.hpp>
#include <stela/framework/detail/transaction_scope.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

namespace stela::sim {
namespace {

using detail::TransactionScope;
using mutants::Mutant;

constexpr std::int64_t jobs_of_a_process = 12;

enum class DecisionKind : std::uint8_t { enrol, enrol_in_unit, look, resize, drop, note };

struct Job {
  std::int64_t number = 0;
  DecisionKind kind = DecisionKind::enrol;
  Id<Course> course;
  Id<Student> student;
  std::int64_t seats = 0;
  int attempts = 1;
};

/// What all processes share: chance, turns and the truth.
struct Campus {
  explicit Campus(const StoryPlan& the_plan)
      : plan{the_plan}, chance{the_plan.seed * 0x9e3779b97f4a7c15 + 3}, turns{chance} {}

  const StoryPlan plan;
  Chance chance;
  Turns turns;
  test::TempDir folder = test::TempDir::in_memory();
  int courses = static_cast<int>(chance.between(1, 3));
  int students = static_cast<int>(chance.between(2, 5));
  double kill = chance.happens(0.8) ? 0.01 : 0;
  Answers answers;
  Story story;
};

/// A process: it does its jobs one after the other, and starts again when it was killed.
class Decider final : public TransactionParticipant {
 public:
  Decider(Campus& campus, int number) : campus_{campus}, number_{number} { open(); }
  ~Decider() override { close(); }

  void live() {
    for (std::int64_t i = 0; i < jobs_of_a_process; ++i) do_until_answered(draw(i));
    close();
  }

  std::string_view name() const noexcept override { return "watch"; }
  std::string_view detail() const noexcept override { return {}; }
  void on_append(Transaction&, std::span<const StoredEvent>) override { interrupt(); }

 private:
  Job draw(std::int64_t i) {
    Chance& chance = campus_.chance;
    constexpr DecisionKind kinds[] = {
        DecisionKind::enrol, DecisionKind::enrol,  DecisionKind::enrol, DecisionKind::enrol_in_unit,
        DecisionKind::look,  DecisionKind::resize, DecisionKind::drop,  DecisionKind::note};
    const std::int64_t number = 1000 * number_ + i;
    return {.number = number,
            .kind = i == 0 ? DecisionKind::resize : kinds[chance.below(std::ssize(kinds))],
            .course = Id<Course>::from(std::to_string(chance.below(campus_.courses))),
            .student = Id<Student>::from(std::to_string(chance.below(campus_.students))),
            .seats = chance.between(1, 4),
            .attempts = static_cast<int>(chance.between(1, 5))};
  }

  void open() {
    store_.emplace(sqlite::open(campus_.folder.file("campus.db"),
                                {.durability = sqlite::Durability::relaxed}));
    store_->attach(*this);
    log_.emplace(*store_, campus_.plan.mutant, [this] { interrupt(); });
  }
  void close() {
    log_.reset();
    if (store_) store_->detach(*this);
    store_.reset();
  }

  /// Here the process may die. Others may get their turn, unless they would wait for its lock.
  void interrupt() {
    const bool is_inside = TransactionScope::is_open();
    if (!is_inside) campus_.turns.pass();
    if (!campus_.chance.happens(is_inside ? 4 * campus_.kill : campus_.kill)) return;
    meet(is_inside ? "kills inside a transaction" : "kills between calls");
    throw Killed{};
  }

  void do_until_answered(const Job& job) {
    for (;;) {
      try {
        if (!store_) open();
        runs_ = 0;
        const std::int64_t sequence = start(job);
        if (runs_ > 1) meet("decisions that ran again");
        return note(job, sequence);
      } catch (const Killed&) {
        trace(job, "is killed");
        close();
      } catch (const ConditionConflict&) {
        meet("conflicts that ended a decision");
      }
      campus_.turns.pass();
    }
  }

  void note(const Job& job, std::int64_t sequence) {
    trace(job, sequence == 0 ? "is refused" : "is at " + std::to_string(sequence));
    const bool decides = job.kind == DecisionKind::enrol || job.kind == DecisionKind::enrol_in_unit;
    const bool looks = job.kind == DecisionKind::look;
    if (looks) meet("looks");
    if (!decides && !looks) meet("plain appends");
    if (decides) meet(sequence == 0 ? "refusals" : "enrolments");
    if (decides && runs_ == 0) meet("answers to a repeated id");
    // A refusal that was repeated under its id saw nothing this time.
    if (sequence == 0 && runs_ == 0) return;
    campus_.answers[job.number] = {.course = job.course.key(),
                                   .student = job.student.key(),
                                   .sequence = sequence,
                                   .only_looked = looks,
                                   .seen = seen_,
                                   .position = position_};
  }

  /// Where its event is, or 0.
  std::int64_t start(const Job& job) {
    switch (job.kind) {
      case DecisionKind::enrol:
      case DecisionKind::look:
        return enrol(job);
      case DecisionKind::enrol_in_unit:
        return enrol_in_unit(job);
      case DecisionKind::resize:
        return append(job, job.course.stream(), Resized{job.course, job.seats, job.number});
      case DecisionKind::drop:
        return append(job, job.student.stream(), Dropped{job.student, job.course, job.number});
      default:
        return append(job, job.course.stream(), Noted{job.course, job.student, job.number});
    }
  }

  static std::int64_t place_of(const AppendResult& result) {
    return result.last < result.first ? 0 : result.first.value();
  }

  template <class E>
  std::int64_t append(const Job& job, const StreamId& stream, const E& event) {
    UnitOfWork unit{*log_};
    unit.append(stream, ExpectedVersion::any(), event);
    return place_of(unit.commit({.append_id = std::to_string(job.number)}));
  }

  void decide_on(const Job& job, Decision& decision, const Seats& seats) {
    ++runs_;
    interrupt();
    const auto load = decision.read(Load{job.student});
    interrupt();
    seen_ = {seats.seats, seats.taken, load.courses};
    position_ = decision.position().value();
    if (job.kind != DecisionKind::look && may_enrol(seen_))
      decision.record(Enrolled{job.course, job.student, job.number, seen_});
  }

  std::int64_t enrol(const Job& job) {
    const auto pass = [this](std::chrono::microseconds) { campus_.turns.pass(); };
    const std::string id = std::to_string(job.number);
    return place_of(
        decide(*log_, {.append_id = id, .retry = {.max_attempts = job.attempts, .wait = pass}},
               Seats{job.course},
               [&](Decision& decision, const Seats& seats) { decide_on(job, decision, seats); }));
  }

  std::int64_t enrol_in_unit(const Job& job) {
    const std::string id = std::to_string(job.number);
    if (const auto before = log_->find_append(id)) return place_of(*before);
    UnitOfWork unit{*log_};
    decide(unit, Seats{job.course},
           [&](Decision& decision, const Seats& seats) { decide_on(job, decision, seats); });
    return place_of(unit.commit({.append_id = id}));
  }

  void meet(std::string_view what) { ++campus_.story.met[what]; }
  void trace(const Job& job, const std::string& what) const {
    if (!campus_.plan.trace) return;
    std::printf("process %d, job %lld (%s, %s): %s\n", number_, static_cast<long long>(job.number),
                job.course.stream().name().c_str(), job.student.stream().name().c_str(),
                what.c_str());
  }

  Campus& campus_;
  const int number_;
  std::optional<Store> store_;
  std::optional<FlawedLog> log_;
  int runs_ = 0;
  Seen seen_;
  std::int64_t position_ = 0;
};

std::uint64_t decided_hash(EventStore& store) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const StoredEvent& event : store.read_all()) {
    for (const char c : event.payload) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return hash;
}

Story decide_for_a_while(const StoryPlan& plan) {
  Campus campus{plan};
  std::vector<std::unique_ptr<Decider>> processes;
  std::vector<std::function<void()>> lives;
  const auto count = static_cast<int>(campus.chance.between(2, 4));
  for (int number = 1; number <= count; ++number) {
    processes.push_back(std::make_unique<Decider>(campus, number));
    lives.emplace_back([&process = *processes.back()] { process.live(); });
  }
  campus.turns.run(lives);
  Store store = sqlite::open(campus.folder.file("campus.db"));
  campus.story.contradiction = find_contradiction(store, campus.answers);
  campus.story.hash = decided_hash(store);
  return campus.story;
}

constexpr std::string_view decider_demands[] = {"kills inside a transaction",
                                                "kills between calls",
                                                "decisions that ran again",
                                                "looks",
                                                "plain appends",
                                                "refusals",
                                                "enrolments",
                                                "answers to a repeated id"};

constexpr StoryMutant decider_mutants[] = {
    {Mutant::no_condition, "its decision saw"},
    {Mutant::condition_at_commit, "its decision saw"},
    {Mutant::half_a_condition, "its decision saw"},
    {Mutant::reads_cut_short, "a refusal there saw"},
    {Mutant::append_id_ignored, "its job was done before"},
};

}  // namespace

const StoryKind decisions{decide_for_a_while, decider_demands, decider_mutants};

}  // namespace stela::sim
