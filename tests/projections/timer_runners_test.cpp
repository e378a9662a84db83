// Several runners in processes of their own, killed and paused beyond their leases: every alarm
// rings once.
#include "projections/alarms.hpp"
#include "support/engine.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <vector>

namespace stela::timer_runners_test {
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

constexpr int alarms = 400;

/// Runs until it is killed.
void run_alarms(const std::string& path) {
  auto store = test::open_at(path);
  Projections projections{store};
  projections.add_process(Alarms{system_clock()}, {.start = ReactionStart::beginning});
  Runner runner{projections, {.lease_ttl = 300ms, .idle_backoff = 50ms}};
  runner.run({});
}

/// Sets alarms that are due within a second, moves some and clears some.
void set_alarms(const std::string& path, std::atomic<int>& done) {
  std::mt19937 random{7};
  const auto below = [&](int limit) { return std::uniform_int_distribution{0, limit - 1}(random); };
  auto store = test::open_at(path);
  for (int i = 0; i < alarms; ++i) {
    const auto due = system_clock().now() + std::chrono::milliseconds{below(1000)};
    append_alarm(store, i, AlarmSet{micros(due)});
    if (below(5) == 0) append_alarm(store, below(i + 1), AlarmCleared{});
    if (below(5) == 0) append_alarm(store, below(i + 1), AlarmSet{micros(due + 200ms)});
    done.store(i + 1);
  }
}

AlarmHistory history_of(const std::string& path) {
  auto store = test::open_at(path);
  return AlarmHistory{store};
}

TEST(TimerRunners, RingEachAlarmOnceWhenTheyAreKilledAndPaused) {
  const TempDir dir;
  const std::string path = dir.file("alarms.db");
  { auto store = test::open_at(path); }
  const test::Shared<std::atomic<int>> done;
  std::vector<std::unique_ptr<test::Process>> runners(3);
  for (auto& runner : runners) {
    runner = std::make_unique<test::Process>([&] { run_alarms(path); });
  }
  test::Process author{[&] { set_alarms(path, *done); }};

  std::mt19937 random{11};
  for (int round = 0; done->load() < alarms && round < 1'000; ++round) {
    auto& victim = runners[std::uniform_int_distribution<std::size_t>{0, 2}(random)];
    const int seen = done->load();
    ASSERT_TRUE(test::eventually([&] { return done->load() >= std::min(seen + 25, alarms); }));
    if (round % 2 == 0) {
      victim->kill();
      victim = std::make_unique<test::Process>([&] { run_alarms(path); });
    } else {
      victim->stop();
      // Beyond its lease: another one takes the process, unless the victim holds the write lock.
      (void)test::eventually([&] { return done->load() == alarms; }, 700ms);
      victim->resume();
    }
  }
  EXPECT_EQ(author.wait(), 0);
  EXPECT_TRUE(test::eventually([&] { return history_of(path).pending() == 0; }));
  for (auto& runner : runners) runner->kill();

  const AlarmHistory seen = history_of(path);
  EXPECT_THAT(seen.flaws(), IsEmpty());
  EXPECT_GT(seen.rang(), alarms / 2);
}

}  // namespace
}  // namespace stela::timer_runners_test
