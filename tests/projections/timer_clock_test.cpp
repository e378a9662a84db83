// Timers and time: replays, backups, clocks that jump, runners that sleep.
#include "projections/inn.hpp"
#include "projections/models.hpp"
#include "support/engine.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>

namespace stela::timer_clock_test {
namespace {

using namespace std::chrono_literals;
using test::history;
using test::Inn;
using test::PaymentDeadline;
using test::request;
using test::Requested;
using test::TempDir;
using ::testing::ElementsAre;

/// Moves on whenever somebody asks for the time.
class RestlessClock final : public Clock {
 public:
  Timestamp now() const override {
    clock_.advance(1ms);
    return clock_.now();
  }
  std::chrono::steady_clock::time_point steady_now() const override { return clock_.steady_now(); }
  void advance(std::chrono::microseconds by) const { clock_.advance(by); }

 private:
  mutable testing::ManualClock clock_;
};

TEST(Timer, RecordsNothingBeforeItsTime) {
  const RestlessClock clock;
  Store store = test::open_empty({.clock = &clock});
  Projections projections{store};
  projections.add_process(PaymentDeadline{});
  Runner runner{projections};
  request(store, "1");
  runner.run_once();
  clock.advance(15min - 200ms);
  for (int i = 0; i < 200 && history(store).size() < 2; ++i) runner.run_once();

  std::vector<Timestamp> times;
  for (const StoredEvent& event : store.read_all()) times.push_back(event.recorded_at);
  ASSERT_EQ(times.size(), 2);
  EXPECT_GE(times[1], times[0] + 15min);
}

// --- replays, backups, clocks

TEST(Timer, IsNeitherSetNorFiredByAReplay) {
  Inn inn;
  inn.projections.add(test::Counts{});
  request(inn.store, "1");
  Runner runner{inn.projections};
  runner.run_once();
  inn.clock.advance(1h);

  EXPECT_TRUE(Replayer{inn.projections}.run().is_complete);

  EXPECT_THAT(history(inn.store), ElementsAre("1 requested"));
  EXPECT_EQ(runner.run_once().timers_fired, 1);
}

TEST(Timer, OfARestoredBackupIsHeld) {
  const TempDir dir;
  testing::ManualClock clock;
  {
    auto store = sqlite::open(dir.file("shop.db"), {.clock = &clock});
    Projections projections{store};
    projections.add_process(PaymentDeadline{});
    request(store, "1");
    Runner{projections}.run_once();
    sqlite::backup(store, dir.file("backup.db"));
    clock.advance(1h);
    EXPECT_EQ(Runner{projections}.run_once().timers_fired, 1);
  }
  auto store = sqlite::open(dir.file("backup.db"), {.clock = &clock});
  Projections projections{store};
  projections.add_process(PaymentDeadline{});

  EXPECT_EQ(Runner{projections}.run_once().timers_fired, 0);
  EXPECT_THAT(history(store), ElementsAre("1 requested"));
}

TEST(Timer, IsNotHeldInACopyThatHadNone) {
  const TempDir dir;
  testing::ManualClock clock;
  auto original = sqlite::open(dir.file("shop.db"), {.clock = &clock});
  sqlite::backup(original, dir.file("backup.db"));
  auto store = sqlite::open(dir.file("backup.db"), {.clock = &clock});
  Projections projections{store};
  projections.add_process(PaymentDeadline{});
  request(store, "1");
  Runner runner{projections};
  runner.run_once();
  clock.advance(15min);

  EXPECT_EQ(runner.run_once().timers_fired, 1);
}

TEST(Timer, DoesNotFollowAJumpOfTheClockUntilItHasLasted) {
  Inn inn;
  request(inn.store, "1", 30);
  inn.run();
  inn.clock.jump_to(inn.clock.now() + 2h);

  EXPECT_EQ(inn.run().timers_fired, 0);
  EXPECT_EQ(inn.run_after(9min).timers_fired, 0);
  EXPECT_EQ(inn.run_after(1min).timers_fired, 1);
}

TEST(Timer, GoesOnByTheOldTimeWhileAJumpOfTheClockIsHeld) {
  Inn inn;
  request(inn.store, "1", 5);
  request(inn.store, "2", 30);
  inn.run();
  inn.clock.jump_to(inn.clock.now() + 2h);
  inn.run();

  EXPECT_EQ(inn.run_after(5min).timers_fired, 1);
  EXPECT_THAT(history(inn.store), ElementsAre("1 requested", "2 requested", "1 cancelled"));
}

TEST(Timer, FollowsAClockThatIsPutRightAgain) {
  Inn inn;
  request(inn.store, "1", 30);
  inn.run();
  inn.clock.jump_to(inn.clock.now() + 2h);
  inn.run();
  inn.clock.jump_to(inn.clock.now() - 2h);
  inn.run();

  EXPECT_EQ(inn.run_after(29min).timers_fired, 0);
  EXPECT_EQ(inn.run_after(1min).timers_fired, 1);
}

TEST(Timer, FollowsASmallJumpOfTheClockAtOnce) {
  Inn inn;
  request(inn.store, "1", 5);
  inn.run();
  inn.clock.jump_to(inn.clock.now() + 5min);

  EXPECT_EQ(inn.run().timers_fired, 1);
}

TEST(Timer, IsSetAndFiredByAClockThatWasPutBack) {
  Inn inn;
  inn.clock.advance(10h);
  inn.run();
  inn.clock.jump_to(inn.clock.now() - 2h);
  request(inn.store, "1", 5);
  inn.run();

  EXPECT_EQ(inn.run_after(4min).timers_fired, 0);
  EXPECT_EQ(inn.run_after(1min).timers_fired, 1);
}

TEST(Timer, FollowsAClockThatIsPutBackAndThenRightAgain) {
  Inn inn;
  request(inn.store, "1", 5);
  inn.run();
  inn.clock.jump_to(inn.clock.now() - 2h);
  EXPECT_EQ(inn.run_after(4min).timers_fired, 0);
  inn.clock.jump_to(inn.clock.now() + 2h);
  EXPECT_EQ(inn.run().timers_fired, 0);

  EXPECT_EQ(inn.run_after(1min).timers_fired, 1);
}

TEST(Timer, OfARemovedProcessIsGone) {
  Inn inn;
  request(inn.store, "1");
  inn.run();
  ProjectionOperations{inn.store}.remove("payment_deadline");

  Projections again{inn.store};
  again.add_process(PaymentDeadline{});
  inn.clock.advance(1h);
  EXPECT_EQ(Runner{again}.run_once().timers_fired, 0);
}

// --- wake-ups

TEST(Timer, WakesARunnerThatSleeps) {
  const TempDir dir;
  auto store = test::open_at(dir.file("shop.db"));
  Projections projections{store};
  projections.add_process(PaymentDeadline{});
  Runner runner{projections, {.idle_backoff = 60s}};
  std::stop_source stop;
  const auto subscription = store.on_commit([&](const CommitNotice& notice) {
    if (notice.events.front().type() == "booking.cancelled") stop.request_stop();
  });
  UnitOfWork unit{store};
  unit.append(StreamId::parse("booking-1"), ExpectedVersion::none(), Requested{0});
  const auto began = std::chrono::steady_clock::now();
  unit.commit();

  runner.run(stop.get_token());

  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  EXPECT_THAT(history(store), ElementsAre("1 requested", "1 cancelled"));
}

}  // namespace
}  // namespace stela::timer_clock_test
