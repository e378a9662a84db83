#include "worker/layout.hpp"
#include "cli/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

namespace stela::tool {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* hostile = "evil\x1b[2J\x07\nname";

View busy_view() {
  View view{.database = "/data/shop.db",
            .broker_url = "nats://127.0.0.1:4222",
            .worker = "w1",
            .state = "relaying",
            .window = std::chrono::seconds{30}};
  view.done.ticks = 12;
  view.done.totals = {.claimed = 1'234, .published = 1'200, .retried = 30, .parked = 4};
  view.done.mean_duration = std::chrono::microseconds{3'120};
  view.done.active_workers = 2;
  view.done.wanted = 8;
  view.done.owned = 7;
  view.done.broker = "connected";
  view.done.per_slot[59] = 100;
  view.done.troubles = {{.sequence = 17, .partition = "p03", .message = hostile}};
  view.trouble_streams = {"order-\x1b[31m"};
  view.status.pending = 5'000;
  view.status.in_flight = 40;
  view.status.parked = 4;
  view.status.lag = std::chrono::milliseconds{2'100};
  for (int i = 0; i < 16; ++i) {
    PartitionStatus partition{.id = PartitionId::at(i, 16), .owner = i < 7 ? "w1" : "w2"};
    partition.pending = 300 + i;
    if (i == 15) partition.stopped = "broker_lost";
    view.status.partitions.push_back(partition);
  }
  return view;
}

std::string plain(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return text;
}

std::string drawn(const View& view, Size size, const Looks& looks = {}) {
  std::string text;
  for (const Line& line : lay_out(view, looks, size)) text += plain(line) + "\n";
  return text;
}

class DashboardLayout : public testing::Test {
 protected:
  void SetUp() override { std::setlocale(LC_CTYPE, "C.UTF-8"); }
};

TEST_F(DashboardLayout, FitsEverySizeWithoutAControlCharacter) {
  const View view = busy_view();
  for (const bool help : {false, true}) {
    for (int width = 1; width <= 200; width += 7) {
      for (const int height : {1, 2, 3, 8, 13, 14, 24, 30, 50}) {
        const auto lines = lay_out(view, {.help = help}, {width, height});
        ASSERT_LE(lines.size(), static_cast<std::size_t>(height));
        for (const Line& line : lines) {
          const std::string text = plain(line);
          ASSERT_LE(width_of(text), static_cast<std::size_t>(width)) << text;
          for (const char c : text) ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
        }
      }
    }
  }
}

TEST_F(DashboardLayout, SaysInEverySizeWhatIsWrongWithTheDatabase) {
  View view = busy_view();
  view.store_problem = "can't be written to: its disk is full";
  for (const Size size : {Size{140, 40}, Size{70, 50}, Size{50, 10}}) {
    EXPECT_THAT(drawn(view, size), HasSubstr("can't be written to: "));
  }
}

/// How many sections begin on the line that the summary begins on.
long columns_of(const std::string& screen) {
  std::istringstream stream{screen};
  for (std::string line; std::getline(stream, line);) {
    if (line.find("Summary") == std::string::npos) continue;
    long count = 1;
    for (std::size_t at = line.find("│"); at != std::string::npos; at = line.find("│", at + 1)) {
      ++count;
    }
    return count;
  }
  return 0;
}

TEST_F(DashboardLayout, HasThreeTwoOrOneColumns) {
  const View view = busy_view();
  EXPECT_EQ(columns_of(drawn(view, {140, 40})), 3);
  EXPECT_EQ(columns_of(drawn(view, {120, 40})), 3);
  EXPECT_EQ(columns_of(drawn(view, {119, 40})), 2);
  EXPECT_EQ(columns_of(drawn(view, {80, 24})), 2);
  EXPECT_EQ(columns_of(drawn(view, {70, 50})), 1);
}

TEST_F(DashboardLayout, ShowsWhatAnOperatorNeedsAtEightyByTwentyFour) {
  const std::string screen = drawn(busy_view(), {80, 24});
  for (const char* wanted :
       {"relaying", "connected", "answers", "3.1 ms", "12 in 30.0 s", "active workers  2",
        "claimed         1,234", "published       1,200", "retried         30", "parked          4",
        "pending 5,000", "oldest pending 2.1 s", "wanted 8  owned 7", "q quit",
        "17  order-\\x1b[31m"}) {
    EXPECT_THAT(screen, HasSubstr(wanted));
  }
}

TEST_F(DashboardLayout, CutsNoNumberOfABusyOutboxAtEightyByTwentyFour) {
  View view = busy_view();
  view.status.pending = 102'358;
  view.status.in_flight = 11'858;
  view.status.stopped = 1;
  view.done.ever.published = 1'097'642;

  const std::string text = drawn(view, {80, 24});
  for (const char* seen : {"pending 102,358  in flight 11,858  parked 4", "1 stopped  retrying 0",
                           "published so far 1,097,642 "}) {
    EXPECT_THAT(text, HasSubstr(seen));
  }
}

TEST_F(DashboardLayout, KeepsTheEssentialsAtSixtyByEight) {
  const std::string screen = drawn(busy_view(), {60, 8});
  for (const char* wanted :
       {"relaying", "connected", "pending 5,000", "oldest 2.1 s", "parked 4", "owned 7 of 16"}) {
    EXPECT_THAT(screen, HasSubstr(wanted));
  }
}

TEST_F(DashboardLayout, LeavesDrainedPartitionsOutAndSaysHowManyDontFit) {
  View view = busy_view();
  view.status.partitions.insert(view.status.partitions.begin(),
                                PartitionStatus{.id = PartitionId{0}, .is_current = false});
  EXPECT_THAT(drawn(view, {140, 50}), Not(HasSubstr(" all ")));
  EXPECT_THAT(drawn(view, {60, 8}), HasSubstr("owned 7 of 16"));
  view.status.partitions[0].pending = 3;
  EXPECT_THAT(drawn(view, {140, 50}), HasSubstr("- all          3"));
  EXPECT_THAT(drawn(view, {60, 8}), HasSubstr("owned 7 of 17"));
  const std::string small = drawn(view, {80, 24});
  EXPECT_THAT(small, HasSubstr("p08"));
  EXPECT_THAT(small, HasSubstr(" more"));
  EXPECT_THAT(small, Not(HasSubstr("p07")));
}

TEST_F(DashboardLayout, ShowsPartitionsInTroubleFirst) {
  View view = busy_view();
  view.status.stopped = 1;
  view.status.partitions[12].attempts = 3;
  view.status.partitions[12].last_error = "no room";
  const std::string small = drawn(view, {80, 24});
  EXPECT_THAT(small, HasSubstr("1 stopped"));
  EXPECT_THAT(small, HasSubstr("~ p12"));
  EXPECT_LT(small.find("! p15"), small.find("~ p12"));
  EXPECT_LT(small.find("~ p12"), small.find("  p14"));
  EXPECT_LT(small.find("  p14"), small.find("  p13")) << "those with most waiting";
  EXPECT_THAT(small, HasSubstr("  p13"));
  EXPECT_THAT(drawn(view, {140, 50}), HasSubstr("backing off: no room"));
}

TEST_F(DashboardLayout, FiltersByTrouble) {
  View view = busy_view();
  view.status.partitions[12].attempts = 3;
  const std::string stopped = drawn(view, {140, 50}, {.filter = "stopped"});
  EXPECT_THAT(stopped, HasSubstr("! p15"));
  EXPECT_THAT(stopped, Not(HasSubstr("p12")));
  EXPECT_THAT(drawn(view, {140, 50}, {.filter = "backing off"}), HasSubstr("~ p12"));
}

TEST_F(DashboardLayout, NamesThePartitionOfAnError) {
  View view = busy_view();
  view.done.troubles = {{.partition = "p15", .message = "broker_lost: it ends too early"}};
  view.trouble_streams = {};
  EXPECT_THAT(drawn(view, {140, 50}), HasSubstr("p15  broker_lost: it ends"));
}

TEST_F(DashboardLayout, MarksStoppedPartitions) {
  EXPECT_THAT(drawn(busy_view(), {140, 50}), HasSubstr("! p15"));
  EXPECT_THAT(drawn(busy_view(), {140, 50}), HasSubstr("stopped: broker_lost"));
}

TEST_F(DashboardLayout, FiltersPartitionsAndErrors) {
  const std::string screen = drawn(busy_view(), {140, 50}, {.filter = "p07"});
  EXPECT_THAT(screen, HasSubstr("p07"));
  EXPECT_THAT(screen, Not(HasSubstr("p08")));
  EXPECT_THAT(screen, Not(HasSubstr("order-")));
  EXPECT_THAT(drawn(busy_view(), {80, 24}, {.typing = true, .filter = "p0"}), HasSubstr("/p0_"));
}

TEST_F(DashboardLayout, SaysWhatStateItIsIn) {
  const View view = busy_view();
  Snapshot done = view.done;
  EXPECT_EQ(state_of(done, view.status, false), "connecting");
  done.ticks_ever = 1;
  EXPECT_EQ(state_of(done, view.status, true), "draining");
  EXPECT_EQ(state_of(done, view.status, false), "relaying");
  EXPECT_EQ(state_of(done, {}, false), "relaying");
  done.totals = {};
  EXPECT_EQ(state_of(done, {}, false), "idle");
  done.owned = 0;
  EXPECT_EQ(state_of(done, view.status, false), "standby");
  EXPECT_EQ(state_of(done, {.partition_count = 2, .stopped = 1}, false), "standby");
  EXPECT_EQ(state_of(done, {.partition_count = 2, .stopped = 2}, false), "stopped");
  done.broker = "down: refused";
  EXPECT_EQ(state_of(done, view.status, false), "broker down");
  done.broker = "misconfigured: there is no JetStream stream 'SHOP'";
  EXPECT_EQ(state_of(done, view.status, false), "misconfigured");
}

TEST(WorkerStatistics, AddUpOverTheWindow) {
  using namespace std::chrono_literals;
  Statistics statistics{{.window = 10s}};
  const Steady begun{std::chrono::hours{1}};
  RelayTick tick;
  tick.published = 5;
  tick.claimed = 6;
  tick.duration = 2ms;
  tick.broker = "connected";
  statistics.add(0, tick, begun);
  statistics.add(0, tick, begun + 8s);
  Snapshot seen = statistics.look(begun + 9s);
  EXPECT_EQ(seen.ticks, 2);
  EXPECT_EQ(seen.totals.published, 10);
  EXPECT_EQ(seen.mean_duration, 2ms);
  EXPECT_EQ(seen.per_slot[58], 5);
  EXPECT_EQ(seen.per_slot[59], 5);

  seen = statistics.look(begun + 15s);
  EXPECT_EQ(seen.ticks, 1);
  EXPECT_EQ(seen.totals.published, 5);
  EXPECT_EQ(seen.ever.published, 10);
  EXPECT_EQ(seen.per_slot[56], 5);
  // The line of the last five minutes forgets them.
  seen = statistics.look(begun + 10min);
  EXPECT_EQ(std::count(seen.per_slot.begin(), seen.per_slot.end(), 0), 60);
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
  for (int i = 1; i <= 100; ++i) statistics.add_end_to_end(std::chrono::milliseconds{i});
  const Snapshot seen = statistics.look(Steady{1h});
  ASSERT_EQ(seen.troubles.size(), 1U);
  EXPECT_EQ(seen.troubles[0].sequence, 17);
  EXPECT_EQ(seen.latency_p50, 50ms);
  EXPECT_EQ(seen.latency_p99, 99ms);
  EXPECT_EQ(seen.end_to_end.count(), 100);
}

}  // namespace
}  // namespace stela::tool
