#include "worker/statistics.hpp"

#include <gtest/gtest.h>

namespace stela::tool::statistics_test {
namespace {

TEST(WorkerStatistics, AddUpOverTheWindow) {
  using namespace std::chrono_literals;
  Statistics statistics{{.window = 10s}};
  const Steady begun{std::chrono::hours{1}};
  RelayTick tick;
  tick.published = 5;
  tick.claimed = 6;
  tick.duration = 2ms;
  tick.broker = {BrokerState::connected};
  statistics.add(0, tick, begun);
  statistics.add(0, tick, begun + 8s);
  Figures seen = statistics.look(begun + 9s);
  EXPECT_EQ(seen.ticks, 2);
  EXPECT_EQ(seen.totals.published, 10);
  EXPECT_EQ(seen.mean_duration, 2ms);

  seen = statistics.look(begun + 15s);
  EXPECT_EQ(seen.ticks, 1);
  EXPECT_EQ(seen.totals.published, 5);
  EXPECT_EQ(seen.ever.published, 10);
}

TEST(WorkerStatistics, WithoutAWindowShowTheLastTick) {
  Statistics statistics{{}};
  RelayTick tick;
  tick.published = 5;
  statistics.add(0, tick, Steady{std::chrono::seconds{100}});
  tick.published = 2;
  statistics.add(0, tick, Steady{std::chrono::seconds{101}});
  EXPECT_EQ(statistics.look(Steady{std::chrono::seconds{102}}).totals.published, 2);
}

TEST(WorkerStatistics, KeepTroublesAndPercentiles) {
  using namespace std::chrono_literals;
  Statistics statistics{{}};
  const std::array fields{LogEntry::Field{"partition", "p01"}, LogEntry::Field{"sequence", "17"}};
  statistics.write({.level = LogLevel::info, .name = "a", .message = "not kept"});
  statistics.write({.level = LogLevel::warning, .name = "a", .message = "kept", .fields = fields});
  for (int i = 1; i <= 100; ++i) {
    statistics.add_end_to_end(std::chrono::milliseconds{i}, Steady{1h});
  }
  const Figures seen = statistics.look(Steady{1h});
  ASSERT_EQ(seen.troubles.size(), 1U);
  EXPECT_EQ(seen.troubles[0].sequence, 17);
  EXPECT_EQ(seen.latency_p50, 50ms);
  EXPECT_EQ(seen.latency_p99, 99ms);
  EXPECT_EQ(seen.end_to_end.count(), 100);
  // What was slow doesn't stay on the screen.
  EXPECT_FALSE(statistics.look(Steady{1h + 2min}).latency_p99);
}

}  // namespace
}  // namespace stela::tool::statistics_test
