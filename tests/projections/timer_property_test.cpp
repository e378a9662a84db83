// Random histories of alarms that are set, moved, cleared and ring, with crashes, failures, clocks
// that jump, replays, backups that are restored, and two runners: judged by the events alone.
#include "projections/alarms.hpp"
#include "support/engine.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

namespace stela::timer_property_test {
namespace {

using namespace std::chrono_literals;
using test::AlarmCleared;
using test::AlarmHistory;
using test::Alarms;
using test::AlarmSet;
using test::append_alarm;
using test::micros;
using test::TempDir;
using ::testing::IsEmpty;

/// What ends a runner in the middle of a transaction.
struct Crash : ParticipantMissing {
  Crash() : ParticipantMissing{"the test ends this runner"} {}
};

/// How many alarms there are; few, so that they are often moved.
constexpr int alarms = 12;

/// A process with a runner: two of them share a file.
struct Worker {
  Worker(const std::string& path, const Clock& clock, const std::function<void()>& on_ring)
      : store{test::open_at(path, {.clock = &clock})}, projections{store} {
    projections.add_process(Alarms{clock, on_ring},
                            {.start = ReactionStart::beginning,
                             .handling = {.max_attempts = 1'000, .retry_backoff = 1s}});
    runner.emplace(projections, RunnerOptions{.clock_jump_limit = 5min});
  }

  Store store;
  Projections projections;
  std::optional<Runner> runner;
};

class RandomAlarms {
 public:
  explicit RandomAlarms(unsigned seed)
      : random_{seed}, fails_{seed % 3 == 0}, path_{dir_.file("alarms.db")} {
    start(0);
    start(1);
  }

  void step() {
    const int what = below(100);
    if (what < 40) return set();
    if (what < 55) return append_alarm(store(), below(alarms), AlarmCleared{});
    if (what < 75) return run(below(2));
    if (what < 90) return clock_.advance(std::chrono::seconds{below(600)});
    if (what < 93) return start(below(2));
    if (what < 95) return clock_.jump_to(clock_.now() - std::chrono::seconds{below(900)});
    if (what < 97) return clock_.jump_to(clock_.now() + std::chrono::seconds{below(3600)});
    if (what < 98) return (void)Replayer{workers_[0]->projections}.run();
    // Only SQLite has copies that Stela makes.
    if (!test::is_on_postgres()) restore();
  }

  /// Everything that is set rings in the end.
  AlarmHistory end() {
    may_fail_ = false;
    for (int i = 0; i < 3; ++i) {
      clock_.advance(24h);
      run(0);
      run(1);
    }
    return AlarmHistory{store(), !fails_};
  }

 private:
  int below(int limit) { return std::uniform_int_distribution{0, limit - 1}(random_); }
  Store& store() { return workers_[0]->store; }

  void start(int worker) {
    auto& place = workers_[static_cast<std::size_t>(worker)];
    place.reset();
    place = std::make_unique<Worker>(path_, clock_, [this] { ring(); });
  }

  void ring() {
    if (!may_fail_) return;
    const int what = below(20);
    if (what == 0) throw Crash{};
    if (what < 4 && fails_) throw std::runtime_error{"it doesn't ring"};
    if (what == 4 && fails_) throw std::bad_alloc{};
  }

  void set() {
    const auto due = clock_.now() + std::chrono::seconds{below(1200) - 200};
    append_alarm(store(), below(alarms), AlarmSet{micros(due)});
  }

  void run(int worker) {
    try {
      workers_[static_cast<std::size_t>(worker)]->runner->run_once();
    } catch (const Crash&) {
      start(worker);
    }
  }

  /// What happened since the backup is lost, and the copy goes on in its place.
  void restore() {
    const std::string copy = dir_.file("copy" + std::to_string(++copies_) + ".db");
    sqlite::backup(store(), copy);
    const int lost = below(6);
    for (int i = 0; i < lost; ++i) set(), run(0), clock_.advance(1min);
    path_ = copy;
    workers_[0].reset();
    workers_[1].reset();
    start(0);
    start(1);
    const auto before = store().last_sequence();
    run(0);
    const AlarmHistory held{store(), false};
    if (store().last_sequence() != before) throw std::logic_error{"an alarm of a copy rang"};
    TimerOperations{store()}.resume();
  }

  std::mt19937 random_;
  const bool fails_;
  bool may_fail_ = true;
  int copies_ = 0;
  TempDir dir_;
  std::string path_;
  testing::ManualClock clock_;
  std::unique_ptr<Worker> workers_[2];
};

TEST(TimerHistories, RingEachAlarmOnceInOrderAndNeverEarly) {
  int rang = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomAlarms history{seed};
    for (int i = 0; i < 60; ++i) history.step();
    const AlarmHistory seen = history.end();
    EXPECT_THAT(seen.flaws(), IsEmpty());
    EXPECT_EQ(seen.pending(), 0U);
    rang += seen.rang();
  }
  EXPECT_GT(rang, 240);
}

}  // namespace
}  // namespace stela::timer_property_test
