#include "projections/models.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <new>
#include <stop_token>
#include <thread>
#include <utility>

namespace stela::runner_test {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::note;
using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Runner, ProjectsEachCommittedEventOnce) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  Runner runner{projections};
  place(store, "1");
  note(store, "1");

  const RunnerTick first = runner.run_once();
  ship(store, "1");
  const RunnerTick second = runner.run_once();
  const RunnerTick third = runner.run_once();

  EXPECT_EQ(first.scanned, 2);
  EXPECT_EQ(second.scanned, 1);
  EXPECT_EQ(third.commits, 0);
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 1 dhl"));
}

TEST(Runner, LeavesNothingHeldWhenItHasCaughtUp) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");

  Runner{projections}.run_once();

  EXPECT_EQ(ProjectionOperations{store}.status().at(0).owner, "");
}

/// Another program that begins to write once a projector has failed.
class Intruder final : public LogSink {
 public:
  explicit Intruder(const std::string& path) : database_{path} {}

  void write(const LogEntry& entry) noexcept override {
    if (entry.name == "projection.stopped") database_.run("BEGIN IMMEDIATE");
  }
  void leave() { database_.run("ROLLBACK"); }

 private:
  test::RawSqlite database_;
};

class Failing : public Counts {
 public:
  static constexpr ProjectorType projector_type{"failing", 1};
  void project(ReadModel&, const Recorded<test::OrderPlaced>&) { throw std::runtime_error{"no"}; }
  void project(ReadModel&, const Recorded<test::OrderShipped>&) {}
};

TEST(Runner, KeepsABuildThatOnlyWaitsForAnotherWriter) {
  const test::TempDir dir = test::TempDir::in_memory();
  {
    auto store = test::open_at(dir.file("a.db"));
    Projections before{store};
    before.add(Totals<1>{});
    place(store, "1");
  }
  Intruder intruder{dir.file("a.db")};
  auto store = sqlite::open(dir.file("a.db"), {.busy_timeout = 0ms, .log = &intruder});
  Projections projections{store};
  projections.add(Totals<2>{});
  projections.add(Failing{}, {.max_attempts = 1});
  Runner runner{projections};

  EXPECT_THROW(runner.run_once(), StoreBusy);
  intruder.leave();
  const RunnerTick tick = runner.run_once();

  EXPECT_EQ(tick.taken_over, 1);
  EXPECT_THAT(tick.elsewhere, IsEmpty());
  EXPECT_THAT(standing(store), Contains("totals@2 v2 living 1"));
}

/// Runs until the projector 'totals' has projected the first event.
void run_to_the_first(Store& store, Runner& runner, FunctionRef<void()> on_tick) {
  std::stop_source stop;
  runner.on_tick([&](const RunnerTick&) {
    on_tick();
    if (ProjectionOperations{store}.status().at(0).position == GlobalSequence{1})
      stop.request_stop();
  });
  runner.run(stop.get_token());
}

TEST(Runner, ContinuesOnceAHandlerHasMemoryAgain) {
  testing::ManualClock clock;
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log, .clock = &clock});
  Projections projections{store};
  bool is_short = true;
  projections.add(Totals<1>{[&](ReadModel&, const StoredEvent&) {
    if (std::exchange(is_short, false)) throw std::bad_alloc{};
  }});
  place(store, "1");
  Runner runner{projections, {.idle_backoff = 1ms}};

  run_to_the_first(store, runner, [&] { clock.advance(1s); });

  EXPECT_THAT(log.entries(),
              Contains(::testing::StartsWith("error projection.failed projector=totals")));
}

/// Stands for any allocation of the runner's own.
class ClockShortOfMemory final : public Clock {
 public:
  Timestamp now() const override {
    if (std::exchange(is_short, false)) throw std::bad_alloc{};
    return clock_.now();
  }
  std::chrono::steady_clock::time_point steady_now() const override { return clock_.steady_now(); }

  mutable bool is_short = false;

 private:
  testing::ManualClock clock_;
};

TEST(Runner, ContinuesOnceThereIsMemoryAgain) {
  ClockShortOfMemory clock;
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log, .clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner runner{projections, {.idle_backoff = 1ms}};
  clock.is_short = true;

  run_to_the_first(store, runner, [] {});

  EXPECT_THAT(log.entries(),
              Contains(::testing::StartsWith("warning projection.store_trouble worker=")));
}

TEST(Runner, IsWaitedForWithoutALimit) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  const std::jthread catching_up{[&] { Runner{projections}.run_once(); }};

  EXPECT_TRUE(projections.wait_for("totals", GlobalSequence{1}, std::chrono::milliseconds::max()));
  EXPECT_TRUE(projections.wait_for("totals", GlobalSequence{1}, std::chrono::milliseconds::min()));
}

TEST(Runner, ReadsEventsOnceForProjectorsThatStandAtTheSame) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  projections.add(Counts{});
  for (int i = 0; i < 10; ++i) place(store, std::to_string(i));

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.scanned, 10);
  EXPECT_EQ(tick.owned_count, 2);
  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 10", "totals@1 v1 living 10"));
}

TEST(Runner, BringsALateProjectorToTheOthers) {
  auto store = test::open_empty();
  {
    Projections projections{store};
    projections.add(Totals<1>{});
    for (int i = 0; i < 10; ++i) place(store, std::to_string(i));
    Runner{projections}.run_once();
    for (int i = 10; i < 15; ++i) place(store, std::to_string(i));
  }
  Projections projections{store};
  projections.add(Totals<1>{});
  projections.add(Counts{});

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.scanned, 15) << "ten for the new one, then five for both";
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT n FROM counts"), 15);
}

TEST(Runner, MovesTheCheckpointToTheLastEventThatItRead) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Counts{});
  for (int i = 0; i < 2000; ++i) test::append(store, "other-1");

  Runner{projections}.run_once();

  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 2000"));
}

TEST(Runner, FindsTheFewEventsThatAreWantedAmongMany) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Counts{});
  for (int i = 0; i < 10; ++i) {
    test::append(store, "other-1", 500);
    place(store, std::to_string(i));
  }
  test::append(store, "other-1", 500);

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.scanned, 10) << "SQL passes over the rest";
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT n FROM counts"), 10);
  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 5510"));
}

TEST(Runner, LeavesProjectorsToTheRunnersThatDriveThem) {
  const test::TempDir dir = test::TempDir::in_memory();
  testing::ManualClock clock;
  auto store = test::open_at(dir.file("a.db"), {.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner first{projections, {.worker = "first"}};
  Runner second{projections, {.worker = "second"}};
  std::jthread running{[&](std::stop_token stop) { first.run(stop); }};
  ASSERT_TRUE(projections.wait_for("totals", GlobalSequence{1}, 30s));

  const RunnerTick tick = second.run_once();

  EXPECT_EQ(tick.owned_count, 0);
  EXPECT_EQ(tick.elsewhere_count, 1);
  ASSERT_EQ(tick.elsewhere.size(), 1U);
  EXPECT_EQ(tick.elsewhere[0].projector, "totals");
  EXPECT_EQ(tick.elsewhere[0].worker, "first");
  EXPECT_EQ(ProjectionOperations{store}.status().at(0).owner, "first");
}

/// SQL behind Stela's back.
std::vector<std::string> run_sql(const std::string& path, const std::string& sql) {
  return test::is_on_postgres() ? test::run_on_postgres(path, sql)
                                : test::RawSqlite{path}.rows(sql);
}

/// A runner in a process of its own that kills or stops itself as soon as it has projected an
/// event.
test::Process runner_that_ends(const std::string& path, int signal) {
  return test::Process{[path, signal] {
    auto store = test::open_at(path);
    Projections projections{store};
    projections.add(Totals<1>{});
    place(store, "1");
    Runner runner{projections, {.worker = "other"}};
    runner.on_tick([signal](const RunnerTick& tick) {
      if (tick.commits > 0) raise(signal);
    });
    runner.run({});
  }};
}

TEST(Runner, TakesOverAtOnceFromOneThatWasKilled) {
  const test::TempDir dir = test::TempDir::in_memory();
  ASSERT_EQ(runner_that_ends(dir.file("a.db"), SIGKILL).wait(), 128 + SIGKILL);
  testing::ManualClock clock;
  clock.jump_to(system_clock().now());
  auto store = test::open_at(dir.file("a.db"), {.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  ship(store, "1");
  Runner runner{projections, {.idle_backoff = 1ms}};

  // A server may take a moment to notice that the connection is gone. The clock stands still.
  EXPECT_TRUE(test::eventually([&] { return runner.run_once().owned_count == 1; }));
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 dhl"));
}

/// While it lives, this process opens no more files and connections.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDERR_FILENO);
    close(next);
    const rlimit limit{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(Runner, WorksWhereOthersCannotSeeThatItRuns) {
  const test::TempDir dir = test::TempDir::in_memory();
  test::RecordingLog log;
  auto store = test::open_at(dir.file("a.db"), {.log = &log});
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();
  ship(store, "1");
  Runner runner{projections};
  {
    const NoMoreFiles limit;
    EXPECT_EQ(runner.run_once().commits, 1);
  }

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 dhl"));
  EXPECT_THAT(log.entries(),
              ElementsAre(::testing::StartsWith("warning projection.store_trouble worker=")));
}

TEST(Runner, LeavesProjectorsToOneThatOnlyStandsStill) {
  const test::TempDir dir = test::TempDir::in_memory();
  test::Process other = runner_that_ends(dir.file("a.db"), SIGSTOP);
  other.wait_until_stopped();
  testing::ManualClock clock;
  clock.jump_to(system_clock().now());
  auto store = test::open_at(dir.file("a.db"), {.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  ship(store, "1");
  Runner runner{projections};

  EXPECT_EQ(runner.run_once().elsewhere_count, 1) << "its lease still runs";
  clock.advance(16s);
  EXPECT_EQ(runner.run_once().owned_count, 1);
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 dhl"));
}

TEST(Runner, WaitsForTheLeaseOfOneThatShowsNoPresence) {
  const test::TempDir dir = test::TempDir::in_memory();
  ASSERT_EQ(runner_that_ends(dir.file("a.db"), SIGKILL).wait(), 128 + SIGKILL);
  run_sql(dir.file("a.db"), "UPDATE projections SET presence = NULL");
  testing::ManualClock clock;
  clock.jump_to(system_clock().now());
  auto store = test::open_at(dir.file("a.db"), {.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  ship(store, "1");
  Runner runner{projections};

  EXPECT_EQ(runner.run_once().elsewhere_count, 1) << "its lease still runs";
  clock.advance(16s);
  const RunnerTick tick = runner.run_once();
  EXPECT_EQ(tick.owned_count, 1);
  EXPECT_TRUE(tick.elsewhere.empty());
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 dhl"));
}

/// A runner that holds `totals` inside its `run`, while others act.
class RunnerLeases : public ::testing::Test {
 protected:
  RunnerLeases() { projections_.add(Totals<1>{}); }

  void while_held(std::chrono::milliseconds lease_ttl, const std::function<void()>& meanwhile) {
    Runner runner{projections_, {.worker = "holder", .lease_ttl = lease_ttl}};
    place(store_, std::to_string(++orders_));
    std::stop_source stop;
    runner.on_tick([&](const RunnerTick&) {
      if (!stop.stop_requested()) meanwhile();
      stop.request_stop();
    });
    runner.run(stop.get_token());
  }
  /// Whether a runner with such leases gets `totals`.
  bool takes(std::chrono::milliseconds lease_ttl) {
    return Runner{projections_, {.worker = "taker", .lease_ttl = lease_ttl}}
               .run_once()
               .owned_count == 1;
  }

  const test::TempDir dir_ = test::TempDir::in_memory();
  const std::string path_ = dir_.file("a.db");
  testing::ManualClock clock_;
  Store store_ = test::open_at(path_, {.clock = &clock_});
  Projections projections_{store_};
  int orders_ = 0;
};

TEST_F(RunnerLeases, AreJudgedByTheirOwnLength) {
  while_held(60s, [&] {
    EXPECT_FALSE(takes(3s)) << "a longer lease than its own isn't absurd";
    clock_.advance(59s);
    EXPECT_FALSE(takes(3s));
    clock_.advance(1s);
    EXPECT_TRUE(takes(3s));
  });
  while_held(3s, [&] {
    EXPECT_FALSE(takes(60s));
    clock_.advance(3s);
    EXPECT_TRUE(takes(60s));
  });
}

TEST_F(RunnerLeases, OfAClockThatWasAheadAreTaken) {
  clock_.advance(10s);
  while_held(3s, [&] {
    clock_.advance(-10s);
    EXPECT_TRUE(takes(60s)) << "though its own leases may end as late";
  });
}

TEST(Runner, CommitsNothingAfterATakeover) {
  const test::TempDir dir = test::TempDir::in_memory();
  testing::ManualClock clock;
  auto store = test::open_at(dir.file("a.db"), {.clock = &clock});
  auto other_store = test::open_at(dir.file("a.db"), {.clock = &clock});
  Projections others{other_store};
  others.add(Totals<1>{});
  Runner other{others, {.worker = "other"}};
  Projections projections{store};
  bool was_paused = false;
  projections.add(Counts{});
  projections.add(Totals<1>{[&](ReadModel&, const StoredEvent& event) {
    if (event.sequence.value() == 1) was_paused = true;
  }});
  place(store, "1");
  Runner runner{projections, {.worker = "paused", .lease_ttl = 1s}};
  // Between two ticks, the lease runs out and somebody else does the work.
  std::stop_source stop;
  runner.on_tick([&](const RunnerTick&) {
    if (was_paused && !stop.stop_requested()) {
      clock.advance(5s);
      place(other_store, "2");
      EXPECT_EQ(other.run_once().owned_count, 1);
      stop.request_stop();
    }
  });
  runner.run(stop.get_token());

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -", "2 jane 100 0 -"));
  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 1", "totals@1 v1 living 2"));
}

TEST(Runner, FollowsCommitsOfThisProcessAndOfOthers) {
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("a.db");
  test::Shared<std::atomic<bool>> go;
  test::Process appender{[&] {
    while (!go->load()) std::this_thread::yield();
    auto store = test::open_at(path);
    place(store, "2");
  }};
  auto store = test::open_at(path);
  Projections projections{store};
  projections.add(Totals<1>{});
  Runner runner{projections, {.idle_backoff = 3600s}};
  std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};

  place(store, "1");
  ASSERT_TRUE(projections.wait_for("totals", GlobalSequence{1}, 30s));
  go->store(true);
  ASSERT_EQ(appender.wait(), 0);

  EXPECT_TRUE(projections.wait_for("totals", GlobalSequence{2}, 30s));
}

TEST(Runner, WaitForSaysWhenItIsNotThere) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");

  EXPECT_FALSE(projections.wait_for("totals", GlobalSequence{1}, 0ms));
  Runner{projections}.run_once();
  EXPECT_TRUE(projections.wait_for("totals", GlobalSequence{1}, 0ms));
  EXPECT_THAT(test::message_of<UsageError>(
                  [&] { (void)projections.wait_for("nobody", GlobalSequence{1}, 0ms); }),
              HasSubstr("no projector 'nobody'"));
}

TEST(Runner, ReportsTheLagOfAProjector) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  clock.advance(7s);
  place(store, "2");

  const auto before = ProjectionOperations{store}.status().at(0);
  Runner{projections}.run_once();
  const auto after = ProjectionOperations{store}.status().at(0);

  EXPECT_EQ(before.lag_events, 2);
  EXPECT_EQ(before.lag, 7s);
  EXPECT_EQ(after.lag_events, 0);
  EXPECT_EQ(after.lag, 0s);
}

TEST(Projections, KnowNothingInADatabaseThatHasNone) {
  auto store = test::open_empty();

  EXPECT_THAT(ProjectionOperations{store}.status(), IsEmpty());
}

TEST(Projections, RefuseAProjectorThatIsRegisteredTwice) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});

  EXPECT_THAT(test::message_of<UsageError>([&] { projections.add(Totals<1>{}); }),
              HasSubstr("'totals' is registered twice"));
}

TEST(Projections, RefuseAVersionThatWentBack) {
  auto store = test::open_empty();
  {
    Projections projections{store};
    projections.add(Totals<2>{});
  }
  Projections projections{store};

  EXPECT_THAT(test::message_of<UsageError>([&] { projections.add(Totals<1>{}); }),
              HasSubstr("the version went back: projector 'totals' is in this database as version "
                        "2, and this process brings version 1"));
}

class Squatter {
 public:
  static constexpr ProjectorType projector_type{"squatter", 1};
  using Events = EventSet<test::OrderPlaced>;
  void create(ReadModel& model) { model.execute("CREATE TABLE {events} (a INTEGER)"); }
  void project(ReadModel&, const Recorded<test::OrderPlaced>&) {}
};

/// Makes what it is told to.
class Maker {
 public:
  static constexpr ProjectorType projector_type{"maker", 1};
  using Events = EventSet<test::OrderPlaced>;
  explicit Maker(std::string sql) : sql_{std::move(sql)} {}
  void create(ReadModel& model) { model.execute(sql_); }
  void project(ReadModel&, const Recorded<test::OrderPlaced>&) {}

 private:
  std::string sql_;
};

TEST(Projections, RefuseATableWhoseNameAModuleOfStelasMayNeed) {
  auto store = test::open_empty();
  Projections projections{store};

  for (const std::string name : {"outbox_messages", "Inbox_held", "projection_x", "stela_x"}) {
    EXPECT_THAT(test::message_of<UsageError>(
                    [&] { projections.add(Maker{"CREATE TABLE {" + name + "} (a INTEGER)"}); }),
                HasSubstr("names that begin in that way are Stela's"))
        << name;
  }
  projections.add(Maker{"CREATE TABLE {outboxes} (a INTEGER)"});
}

TEST(Projections, RefuseATableWhoseNameSqliteKeepsForItself) {
  auto store = test::open_empty();
  Projections projections{store};

  for (const std::string name : {"sqlite_x", "SQLite_sequences"}) {
    EXPECT_THAT(test::message_of<UsageError>(
                    [&] { projections.add(Maker{"CREATE TABLE {" + name + "} (a INTEGER)"}); }),
                HasSubstr("names that begin in that way are SQLite's"))
        << name;
  }
}

TEST(Projections, RefuseATableThatGoesWithTheConnection) {
  auto store = test::open_empty();
  Projections projections{store};

  for (const char* const sql :
       {"CREATE TABLE temp.{x} (a INTEGER)", "CREATE TEMP TABLE {x} (a INTEGER)",
        "CREATE VIRTUAL TABLE temp.{x} USING fts5(a)"}) {
    EXPECT_THAT(test::message_of<UsageError>([&] { projections.add(Maker{sql}); }),
                HasSubstr("temp"))
        << sql;
  }
}

TEST(Projections, RefuseATableWhoseNameIsTaken) {
  auto store = test::open_empty();
  Projections projections{store};

  EXPECT_THAT(test::message_of<UsageError>([&] { projections.add(Squatter{}); }),
              HasSubstr("has a table {events}, and the database has something else of that name"));
  EXPECT_THAT(standing(store), IsEmpty());
}

}  // namespace
}  // namespace stela::runner_test
