#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "worker/dashboard_layout.hpp"
#include "worker/looks.hpp"
#include "worker/trend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <set>
#include <sstream>

namespace stela::tool::layout_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* hostile = "evil\x1b[2J\x07\nname";
constexpr Timestamp now{std::chrono::microseconds{1'700'000'000'000'000}};

WorkerStatus worker_of(std::string name, int partitions) {
  return {.name = std::move(name),
          .host = "vm",
          .heartbeat_until = now + 17s,
          .heartbeat_ttl = 20s,
          .is_alive = true,
          .partitions = partitions,
          .broker = BrokerStatus{BrokerState::connected}};
}

/// The last of its partitions is stopped.
View view_of(int partitions) {
  View view{.command = "stela outbox work",
            .program = "stela",
            .database = "/data/shop.db",
            .own = OwnWork{.worker = "w1",
                           .broker_url = "nats://127.0.0.1:4222",
                           .state = "relaying",
                           .window = 30s,
                           .lease_ttl = 15s}};
  Figures& done = view.own->done;
  done.ticks = 12;
  done.totals = {.claimed = 1'234, .published = 1'200, .retried = 30, .parked = 4};
  done.mean_duration = 3'120us;
  done.active_workers = 2;
  done.wanted = 8;
  done.owned = 7;
  done.broker = BrokerStatus{BrokerState::connected};
  view.errors = {
      {.sequence = 17, .subject = "p03", .stream = "order-\x1b[31m", .message = hostile}};
  view.status.at = now;
  view.status.pending = 5'000;
  view.status.in_flight = 40;
  view.status.lag = 2'100ms;
  for (int i = 0; i < partitions; ++i) {
    PartitionStatus partition{
        .id = PartitionId::at(i, partitions), .owner = i < 7 ? "w1" : "w2", .lease_left = 10s};
    partition.pending = 300 + i;
    if (i == partitions - 1) partition.stopped = StopReason::broker_lost;
    view.status.partitions.push_back(partition);
  }
  view.status.stopped = 1;
  view.status.workers = {worker_of("w1", 7), worker_of("w2", partitions - 7)};
  return view;
}

View busy_view() {
  return view_of(16);
}

std::string plain(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return text;
}

std::string drawn(const View& view, Size size, const Looks& looks = {}) {
  std::string text;
  for (const Line& line : lay_out(view, looks, size).lines) text += plain(line) + "\n";
  return text;
}

/// Blanks of cells count as one.
std::string squeezed(const std::string& screen) {
  std::string text;
  for (const char c : screen) {
    if (c != ' ' || !text.ends_with(' ')) text += c;
  }
  return text;
}

/// The number of its line, from 0; as many as there are lines if it isn't drawn.
std::size_t line_of(const std::string& screen, const std::string& what) {
  return static_cast<std::size_t>(std::count(
      screen.begin(),
      screen.begin() + static_cast<std::ptrdiff_t>(std::min(screen.find(what), screen.size())),
      '\n'));
}

class DashboardLayout : public ::testing::Test {
 protected:
  void SetUp() override { std::setlocale(LC_CTYPE, "C.UTF-8"); }
};

TEST_F(DashboardLayout, FitsEverySizeWithoutAControlCharacter) {
  for (const int partitions : {1, 16, 200}) {
    const View view = view_of(partitions);
    for (const Looks& looks :
         {Looks{}, Looks{.help = true}, Looks{.shows_all = true, .scroll = 9}}) {
      for (int width = 1; width <= 200; width += 7) {
        for (const int height : {1, 2, 3, 8, 13, 14, 24, 30, 50}) {
          const auto lines = lay_out(view, looks, {width, height}).lines;
          ASSERT_LE(lines.size(), static_cast<std::size_t>(height));
          for (const Line& line : lines) {
            const std::string text = plain(line);
            ASSERT_LE(width_of(text), static_cast<std::size_t>(width)) << text;
            for (const char c : text)
              ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
          }
        }
      }
    }
  }
}

TEST_F(DashboardLayout, NamesADatabaseProblemInEverySize) {
  View view = busy_view();
  view.store_problem = "can't be written to: its disk is full";
  for (const Size size : {Size{140, 40}, Size{70, 50}, Size{50, 10}}) {
    EXPECT_THAT(drawn(view, size), HasSubstr("can't be written to: "));
  }
}

/// The words of the screen that aren't cut.
std::set<std::string> words_of(const std::string& screen) {
  std::istringstream stream{screen};
  std::set<std::string> words;
  for (std::string word; stream >> word;) {
    if (word.find("…") == std::string::npos && word.find("─") == std::string::npos) {
      words.insert(word);
    }
  }
  return words;
}

TEST_F(DashboardLayout, ShowsNothingLessTheWiderItIs) {
  View view = busy_view();
  view.status.partitions[3].attempts = 1;
  view.status.partitions[3].last_error = "refused";
  view.status.partitions[3].next_attempt_at = now + 5s;
  std::set<std::string> before;
  for (const int width : {60, 80, 100, 120, 140, 160, 200}) {
    const std::set<std::string> words = words_of(drawn(view, {width, 60}, {.shows_all = true}));
    for (const std::string& word : before) {
      EXPECT_TRUE(words.contains(word)) << word << " isn't shown at " << width << " columns";
    }
    before = words;
  }
}

TEST_F(DashboardLayout, FitsIntoEightyByTwentyFour) {
  const std::string screen = squeezed(drawn(busy_view(), {80, 24}));
  for (const char* wanted :
       {"state relaying", "broker connected", "database answers", " in 30s 1 min", "workers 2",
        "claimed 1,234", "published 1,200", "failed 34", "pending 5,000", "oldest 2.1 s",
        "desired 8", "owned 7 of 16", "Workers: 2 live", "q quit", "! p15", "17 order-\\x1b[31m"}) {
    EXPECT_THAT(screen, HasSubstr(wanted));
  }
  // From 30 lines on there is room for all.
  const std::string more = squeezed(drawn(busy_view(), {80, 30}));
  for (const char* wanted :
       {"mean tick 3.1 ms", "latency -", "retry in -", "* w1 vm 3/20 s 7 connected"}) {
    EXPECT_THAT(more, HasSubstr(wanted));
  }
}

TEST_F(DashboardLayout, KeepsTheEssentialsAtSixtyByEight) {
  const std::string screen = squeezed(drawn(busy_view(), {60, 8}));
  for (const char* wanted :
       {"relaying", "connected", "pending 5,000", "oldest 2.1 s", "parked 0", "owned 7 of 16"}) {
    EXPECT_THAT(screen, HasSubstr(wanted));
  }
}

TEST_F(DashboardLayout, ShowsTheRemedyNextToEachProblem) {
  View view = busy_view();
  view.status.partitions[3].attempts = 2;
  view.status.partitions[3].last_error = "no room";
  view.status.partitions[3].next_attempt_at = now + 5s;
  view.status.parked = 5;
  view.status.partitions[1].parked = 1;
  view.status.partitions[2].parked = 4;
  const std::string screen = drawn(view, {200, 50});
  EXPECT_THAT(screen, HasSubstr("! partition p15 is stopped (broker_lost)"));
  EXPECT_THAT(screen, HasSubstr("'stela outbox partitions adopt p15'"));
  EXPECT_THAT(screen, HasSubstr("~ partition p03 is backing off: no room; next retry in 5.0 s"));
  EXPECT_THAT(screen, HasSubstr("'stela doctor'"));
  EXPECT_THAT(screen, HasSubstr("~ 5 messages parked: p02 4, p01 1"));
  EXPECT_THAT(screen, HasSubstr("'stela outbox retry --all'"));
  EXPECT_LT(line_of(screen, "! partition p15"), line_of(screen, "~ partition p03"));
  EXPECT_LT(line_of(screen, "~ 5 messages"), line_of(screen, "Partitions"));
}

TEST_F(DashboardLayout, NamesPartitionsWithTheSameTroubleOnce) {
  View view = view_of(200);
  for (PartitionStatus& each : view.status.partitions) each.stopped = StopReason::broker_lost;
  const std::string screen = drawn(view, {80, 24});
  EXPECT_THAT(screen, HasSubstr("p00, p01, p02, p03, p04, p05, p06, p07 and 192 more"));
}

TEST_F(DashboardLayout, BreaksARemedyBetweenWords) {
  const std::string screen = drawn(busy_view(), {60, 40});
  EXPECT_THAT(screen, HasSubstr("  → the partition resumes by itself"));
  EXPECT_THAT(screen, HasSubstr("--against-broker', which sends again what is missing "));
}

TEST_F(DashboardLayout, HasARowForEachPartitionIfTheyFit) {
  const std::string screen = drawn(busy_view(), {140, 50});
  for (const char* row : {"* p00", "  p14", "! p15"}) EXPECT_THAT(screen, HasSubstr(row));
  EXPECT_THAT(screen, Not(HasSubstr("healthy")));
  EXPECT_THAT(screen, Not(HasSubstr("lines 1-")));
}

TEST_F(DashboardLayout, PutsHealthyPartitionsIntoOneLineIfTheyDontFit) {
  const View view = view_of(200);
  const std::string screen = drawn(view, {80, 24});
  EXPECT_THAT(screen,
              HasSubstr("199 healthy partitions (a shows them): pending 79,401, in flight 0"));
  EXPECT_LT(line_of(screen, "! p199 "), line_of(screen, "199 healthy"));
  EXPECT_THAT(screen, Not(HasSubstr("* p00")));
  EXPECT_THAT(drawn(view, {80, 24}, {.shows_all = true, .scroll = 20}), HasSubstr("lines 21-"));
}

TEST_F(DashboardLayout, ReachesEachOfTwoHundredPartitionsByScrolling) {
  const View view = view_of(200);
  for (const Size size : {Size{60, 14}, Size{80, 24}, Size{200, 50}, Size{40, 8}}) {
    std::string seen;
    Looks looks{.shows_all = true};
    for (int page = 0; page < 400; ++page) {
      const Frame frame = lay_out(view, looks, size);
      for (const Line& line : frame.lines) seen += plain(line) + "\n";
      looks.scroll = frame.scroll;
      const std::size_t before = looks.scroll;
      take_key(looks, key_down, frame.page);
      if (lay_out(view, looks, size).scroll == before) break;
    }
    for (const PartitionStatus& each : view.status.partitions) {
      EXPECT_THAT(seen, HasSubstr(" " + each.id.label() + " ")) << size.width;
    }
  }
}

TEST_F(DashboardLayout, ScrollsNoFurtherThanToTheEnd) {
  const View view = view_of(200);
  const Frame end = lay_out(view, {.shows_all = true, .scroll = 100'000}, {80, 24});
  EXPECT_LT(end.scroll, 250U);
  EXPECT_THAT(plain(end.lines[end.lines.size() - 2]), HasSubstr("order-"));
  EXPECT_EQ(lay_out(view, {.scroll = 100'000}, {140, 100}).scroll, 0U);
}

TEST_F(DashboardLayout, KeepsTheTitlesAboveRowsThatAreScrolled) {
  const std::string screen = drawn(view_of(200), {80, 24}, {.shows_all = true, .scroll = 60});
  EXPECT_THAT(screen, HasSubstr("PARTITION  PENDING"));
}

TEST_F(DashboardLayout, LeavesDrainedPartitionsOut) {
  View view = busy_view();
  view.status.partitions.insert(view.status.partitions.begin(),
                                PartitionStatus{.id = PartitionId{0}, .is_current = false});
  EXPECT_THAT(drawn(view, {140, 50}), Not(HasSubstr("- all")));
  EXPECT_THAT(squeezed(drawn(view, {60, 8})), HasSubstr("owned 7 of 16"));
  view.status.partitions[0].pending = 3;
  EXPECT_THAT(drawn(view, {140, 50}), HasSubstr("~ all              3"));
  EXPECT_THAT(squeezed(drawn(view, {60, 8})), HasSubstr("owned 7 of 17"));
}

/// The partitions in the order of their rows.
std::string order_of(const View& view, SortKey key) {
  std::istringstream stream{drawn(view, {140, 50}, {.shows_all = true, .sort = key, .filter = ""})};
  std::string order;
  bool are_rows = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("Workers")) break;
    if (are_rows) order += line.substr(2, 3) + " ";
    are_rows = are_rows || line.starts_with("  PARTITION");
  }
  return order;
}

TEST_F(DashboardLayout, SortsPartitionsWithThoseInTroubleFirst) {
  View view = view_of(5);
  auto& partitions = view.status.partitions;
  partitions[1].attempts = 1;
  partitions[0].owner = "z";
  partitions[3].owner = "a";
  partitions[2].waiting_since = now - 9s;
  EXPECT_EQ(order_of(view, SortKey::pending), "p04 p01 p03 p02 p00 ");
  EXPECT_EQ(order_of(view, SortKey::oldest), "p04 p01 p02 p00 p03 ");
  EXPECT_EQ(order_of(view, SortKey::owner), "p04 p01 p03 p02 p00 ");
  EXPECT_EQ(order_of(view, SortKey::label), "p04 p01 p00 p02 p03 ");
  partitions[2].parked = 3;
  partitions[1].parked = 1;
  EXPECT_EQ(order_of(view, SortKey::parked), "p04 p02 p01 p00 p03 ");
}

TEST_F(DashboardLayout, FiltersPartitionsProblemsAndErrors) {
  const std::string screen = drawn(view_of(200), {140, 50}, {.filter = "p77"});
  EXPECT_THAT(screen, HasSubstr("  p77"));
  EXPECT_THAT(screen, Not(HasSubstr("p78")));
  EXPECT_THAT(screen, Not(HasSubstr("order-")));
  EXPECT_THAT(screen, Not(HasSubstr("Problems")));
  EXPECT_THAT(drawn(busy_view(), {80, 24}, {.typing = true, .filter = "p0"}), HasSubstr("/p0_"));
}

TEST_F(DashboardLayout, FiltersByTrouble) {
  View view = busy_view();
  view.status.partitions[12].attempts = 3;
  const std::string stopped = drawn(view, {140, 50}, {.filter = "stopped"});
  EXPECT_THAT(stopped, HasSubstr("! p15"));
  EXPECT_THAT(stopped, Not(HasSubstr("p12")));
  EXPECT_THAT(drawn(view, {140, 50}, {.filter = "backing off"}), HasSubstr("~ p12"));
}

TEST_F(DashboardLayout, FindsPartitionsWithParkedMessages) {
  View view = busy_view();
  view.status.partitions[12].parked = 3;
  const std::string parked = drawn(view, {140, 50}, {.filter = "has parked"});
  EXPECT_THAT(parked, HasSubstr("~ p12"));
  EXPECT_THAT(parked, Not(HasSubstr("p15")));
}

TEST_F(DashboardLayout, NamesThePartitionOfAnError) {
  View view = busy_view();
  view.errors = {{.subject = "p15", .message = "broker_lost: it ends too early"}};
  EXPECT_THAT(drawn(view, {140, 50}), HasSubstr("p15  broker_lost: it ends"));
}

TEST_F(DashboardLayout, SaysWhenTheBacklogIsDrained) {
  View view = busy_view();
  view.pace = {.growth = -20, .time_to_drain = 250s};
  EXPECT_THAT(drawn(view, {80, 24}), HasSubstr("drains in 4 min 10 s"));
  EXPECT_THAT(squeezed(drawn(view, {40, 10})), HasSubstr("drains in 4 min 10 s"));
  view.pace = {.growth = 12};
  EXPECT_THAT(squeezed(drawn(view, {80, 24})), HasSubstr("backlog grows 12/s"));
}

TEST_F(DashboardLayout, ShowsAllWorkersToAnObserver) {
  View view = busy_view();
  view.command = "stela outbox top";
  view.own.reset();
  view.status.workers = {{.name = "w2", .pid = 7, .process = WorkerProcess::runs},
                         {.name = "w1", .is_alive = true}};
  const std::string screen = squeezed(drawn(view, {100, 40}));
  EXPECT_THAT(screen, HasSubstr("stela outbox top"));
  EXPECT_THAT(screen, HasSubstr("workers 1"));
  EXPECT_THAT(screen, HasSubstr("! w2 - 0 silent"));
  EXPECT_THAT(screen, HasSubstr("worker 'w2' is silent, and its process 7 is running"));
  EXPECT_THAT(screen, HasSubstr("17 order-\\x1b[31m"));
  view.status.workers.clear();
  EXPECT_THAT(drawn(view, {100, 40}), HasSubstr("there is no live worker"));
}

TEST_F(DashboardLayout, PutsBoxesBesideEachOtherByWidth) {
  const auto place_in = [](const std::string& screen, const char* box) {
    return line_of(screen, std::string{box} + " ─");
  };
  const std::string one = drawn(busy_view(), {60, 60});
  EXPECT_LT(place_in(one, "Summary"), place_in(one, "Throughput, per second"));
  for (const int width : {80, 120}) {
    const std::string two = drawn(busy_view(), {width, 60});
    EXPECT_EQ(place_in(two, "Summary"), place_in(two, "Throughput, per second"));
    EXPECT_LT(line_of(two, "Partitions"), place_in(two, "Workers"));
  }
  const std::string three = drawn(busy_view(), {200, 60});
  EXPECT_EQ(place_in(three, "Summary"), place_in(three, "Workers"));
  for (const int width : {60, 80, 120, 200}) {
    const std::string screen = squeezed(drawn(busy_view(), {width, 60}));
    for (const char* wanted : {"* w1 vm 3/20 s 7 connected", "w2 vm 3/20 s 9 connected",
                               "taken over 0", "lease 5/15 s", "p03 17 order-"}) {
      EXPECT_THAT(screen, HasSubstr(wanted)) << width;
    }
    EXPECT_LT(line_of(screen, "p15 "), line_of(screen, "Recent errors"));
  }
}

TEST_F(DashboardLayout, MovesNoCellWhenNumbersGrow) {
  View view = busy_view();
  for (const Size size : {Size{60, 40}, Size{80, 24}, Size{120, 40}, Size{200, 40}, Size{40, 10}}) {
    view.status.pending = 1;
    const std::string before = drawn(view, size);
    view.status.pending = 1'234'567;
    view.own->done.totals.claimed = 98'765;
    const std::string after = drawn(view, size);
    for (const char* name : {"oldest", "parked", "published", "failed"}) {
      EXPECT_EQ(before.find(name), after.find(name)) << name << '\n' << before << after;
    }
  }
}

TEST_F(DashboardLayout, HasTheOwnerAtEightyColumns) {
  EXPECT_THAT(squeezed(drawn(busy_view(), {80, 24})),
              HasSubstr("! p15 315 0 - w2 stopped: broker_lost"));
  EXPECT_THAT(drawn(busy_view(), {79, 24}), Not(HasSubstr("OWNER")));
}

TEST_F(DashboardLayout, NamesThePresentRateAndTheScaleOfTheCurve) {
  View view = busy_view();
  view.throughput.speeds[Throughput::all] = {21'097, 3.14, 0.01};
  view.throughput.now = 720;
  view.throughput.curve.fill(0);
  view.throughput.curve[0] = {};
  view.throughput.curve[28] = 1'440;
  view.throughput.curve[29] = 720;
  const std::string screen = squeezed(drawn(view, {80, 24}));
  EXPECT_THAT(screen, HasSubstr("by all 21,097 3.1 <0.1"));
  EXPECT_THAT(screen, HasSubstr("published now 720 most 1,440"));
  EXPECT_THAT(screen, HasSubstr("60 min ·▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█▅"));
}

/// The state of the first partition.
std::string state_in(const OutboxStatus& status) {
  return obstacle_of(status.partitions.front(), status);
}

OutboxStatus waiting_status() {
  return {.partitions = {{.id = PartitionId::at(0, 2),
                          .owner = "w1",
                          .pending = 1,
                          .oldest = GlobalSequence{9}},
                         {.id = PartitionId::at(1, 2), .owner = "w1"}},
          .workers = {worker_of("w1", 2)}};
}

TEST_F(DashboardLayout, SaysWhatAPartitionWaitsFor) {
  OutboxStatus status = waiting_status();
  EXPECT_EQ(state_in(status), "");
  status.workers[0].broker = BrokerStatus{BrokerState::down, "refused"};
  EXPECT_EQ(state_in(status), "waits: broker");
  status.partitions[0].owner.clear();
  EXPECT_EQ(state_in(status), "waits: broker") << "nobody who is alive reaches it";
  status.workers[0].broker = BrokerStatus{BrokerState::connected};
  EXPECT_EQ(state_in(status), "no worker") << "nobody has it yet";
  status.partitions[0].owner = "w1";
  status.workers[0].is_alive = false;
  EXPECT_EQ(state_in(status), "no worker");
  status.partitions[0].pending = 0;
  EXPECT_EQ(state_in(status), "");
}

TEST_F(DashboardLayout, NamesTheOlderGenerationThatAPartitionWaitsFor) {
  OutboxStatus status = waiting_status();
  status.generations = {{.number = 1, .first_sequence = GlobalSequence{1}},
                        {.number = 2, .first_sequence = GlobalSequence{5}}};
  status.partitions[1].pending = 2;
  status.partitions[1].oldest = GlobalSequence{3};
  EXPECT_EQ(state_in(status), "waits for p01");
  for (int i = 2; i < 4; ++i) {
    status.partitions.push_back(status.partitions[1]);
    status.partitions.back().id = PartitionId::at(i, 4);
  }
  EXPECT_EQ(state_in(status), "waits: older generation");
  status.generations[0].is_drained = true;
  EXPECT_EQ(state_in(status), "");
}

TEST_F(DashboardLayout, TakesOneMisconfiguredPartitionForNoWorkerWithoutABroker) {
  View view = busy_view();
  view.status.partitions[3].attempts = 1;
  view.status.partitions[3].last_error = "no stream SHOP_p03";
  view.own->done.broker = BrokerStatus{BrokerState::misconfigured, "no stream SHOP_p03"};
  view.own->done.ticks_ever = 1;
  view.status.workers[0].broker = view.own->done.broker;
  EXPECT_EQ(state_of(view.own->done, view.status, false), "relaying");
  EXPECT_EQ(obstacle_of(view.status.partitions[2], view.status), "");
  const std::string screen = squeezed(drawn(view, {120, 50}));
  EXPECT_THAT(screen, HasSubstr("~ partition p03 is backing off: no stream SHOP_p03"));
  EXPECT_THAT(screen, HasSubstr("* w1 vm 3/20 s 7 connected"));
  EXPECT_THAT(screen, Not(HasSubstr("can't publish everything")));
}

TEST_F(DashboardLayout, SaysOnceThatNoWorkerReachesTheBroker) {
  View view = busy_view();
  for (WorkerStatus& worker : view.status.workers) {
    worker.broker = BrokerStatus{BrokerState::down, "refused"};
    worker.is_cut_off = true;
  }
  const std::string screen = drawn(view, {200, 50});
  EXPECT_THAT(screen, HasSubstr("no worker reaches its broker: down: refused"));
  EXPECT_THAT(screen, Not(HasSubstr("is cut off from its broker")));
  EXPECT_THAT(screen, HasSubstr("! w1"));
  EXPECT_THAT(screen, HasSubstr("cut off: down: refused"));
  EXPECT_THAT(drawn(view, {80, 30}), HasSubstr("~ 15 partitions, waits: broker (a shows them)"));
}

TEST_F(DashboardLayout, SaysSinceWhenAProblemIs) {
  View view = busy_view();
  view.status.partitions[15].stopped_at = now - 17min;
  EXPECT_THAT(squeezed(drawn(view, {200, 50})),
              HasSubstr("! partition p15 is stopped (broker_lost) (for 17 min)"));
}

TEST_F(DashboardLayout, ShowsWhatFollowsTheLogAndWhatOperatorsKnow) {
  View view = busy_view();
  ProjectorStatus projector{.name = "totals", .failing = GlobalSequence{7}};
  projector.stopped = true;
  projector.error = "no such table";
  view.beside.projectors = {projector};
  view.beside.acknowledged = {{.code = "partition_broker_lost",
                               .subject = "p15",
                               .severity = "critical",
                               .who = "ada",
                               .why = "the stream is rebuilt",
                               .at = now,
                               .until = now + 1h}};
  view.status.parked = 2;
  view.beside.failures = {
      {.streams = 1,
       .sample = {.sequence = GlobalSequence{4711}, .last_error = "its payload has 1.3 MiB"}}};
  for (const int width : {60, 80, 120, 200}) {
    const std::string screen = squeezed(drawn(view, {width, 80}));
    EXPECT_THAT(screen, HasSubstr("! projector 'totals' v1 is stopped at event 7: no such"));
    EXPECT_THAT(screen, HasSubstr("2 messages parked; event 4711: its payload has 1.3"));
    EXPECT_THAT(screen, HasSubstr("\n partition p15 is stopped (broker_lost)"));
    EXPECT_THAT(screen, HasSubstr("→ known to ada until "));
    EXPECT_GT(line_of(screen, "p15 is stopped"), line_of(screen, "2 messages parked"));
  }
}

TEST_F(DashboardLayout, SaysWhereElseToLookIfNothingIsWrong) {
  View view = busy_view();
  view.status.partitions.back().stopped.reset();
  EXPECT_THAT(drawn(view, {80, 40}),
              HasSubstr("none in the database; 'stela check' asks the broker for its streams"));
}

TEST_F(DashboardLayout, TakesNoPartitionForWellWhoseLeaseIsOver) {
  View view = busy_view();
  for (PartitionStatus& each : view.status.partitions) each.lease_left = -3s;
  view.status.workers.clear();
  for (PartitionStatus& each : view.status.partitions) each.pending = 0;
  const std::string screen = squeezed(drawn(view, {80, 60}));
  EXPECT_THAT(screen, HasSubstr("~ p03 0 0 - w1 lease expired"));
  EXPECT_THAT(screen, Not(HasSubstr(" ok ")));
}

TEST_F(DashboardLayout, SaysOnceThatNobodyCanWriteToTheDatabase) {
  View view = busy_view();
  view.store_problem = "can't be written to: its disk is full";
  view.status.workers[0].is_alive = false;
  view.status.workers[0].process = WorkerProcess::runs;
  for (PartitionStatus& each : view.status.partitions) each.lease_left = -3s;
  const std::string screen = drawn(view, {120, 60});
  EXPECT_THAT(screen, HasSubstr("its disk is full"));
  EXPECT_THAT(screen, Not(HasSubstr("worker 'w1' is silent")));
  EXPECT_THAT(screen, Not(HasSubstr("whose lease has expired")));
}

TEST_F(DashboardLayout, PromisesNoDrainWhereNothingMoves) {
  View view = busy_view();
  view.pace = {.growth = -3, .time_to_drain = 12s};
  view.throughput.now = 4;
  EXPECT_THAT(squeezed(drawn(view, {120, 40})), HasSubstr("drains in 12.0 s"));
  view.throughput.now = 0;
  EXPECT_THAT(squeezed(drawn(view, {120, 40})), HasSubstr("drains in - "));
}

TEST_F(DashboardLayout, CutsNoWordOfAProblemThatIsWiderThanTheScreen) {
  View view = busy_view();
  const std::string path = "/data/" + std::string(90, 'x') + "é/.s.PGSQL.5432";
  view.store_problem = "can't connect to " + path;
  std::string problem;
  for (const Line& line : lay_out(view, {}, {60, 60}).lines) {
    const std::string text = plain(line);
    const std::string words = text.substr(0, text.find_last_not_of(' ') + 1);
    problem += words.starts_with("  ") ? words.substr(2) : words;
  }
  EXPECT_THAT(problem, HasSubstr(path));
}

TEST_F(DashboardLayout, DimsTheNumbersOfADatabaseThatDoesNotAnswer) {
  View view = busy_view();
  view.store_problem = "can't connect";
  view.is_stale = true;
  for (const Size size : {Size{60, 40}, Size{80, 24}, Size{120, 40}, Size{200, 50}, Size{40, 10}}) {
    EXPECT_THAT(drawn(view, size), HasSubstr("as of 22:13:20Z"));
    for (const Line& line : lay_out(view, {}, size).lines) {
      if (plain(line).find("pending") == std::string::npos) continue;
      EXPECT_EQ(line.front().style, Style::dim) << plain(line);
    }
  }
  EXPECT_EQ(state_of(view.own->done, view.status, false, true), "database down");
}

TEST_F(DashboardLayout, PutsNoSentenceInYellow) {
  View view = busy_view();
  view.status.partitions[3].attempts = 1;
  view.status.partitions[3].last_error = "the stream SHOP_p03 is full, and takes no new messages";
  view.status.parked = 5;
  view.status.partitions[1].parked = 5;
  view.errors.push_back(
      {.at = now, .subject = "p03", .message = "the stream is full, and stays so"});
  for (const int width : {60, 80, 120, 200}) {
    for (const Line& line : lay_out(view, {.shows_all = true}, {width, 60}).lines) {
      for (const Span& span : line) {
        EXPECT_LE(span.style == Style::warning ? width_of(span.text) : 0, 21U) << span.text;
      }
    }
  }
}

TEST_F(DashboardLayout, KeepsTheEndOfAnErrorWhereItsCauseIs) {
  View view = busy_view();
  view.errors = {
      {.at = now,
       .sequence = 4711,
       .subject = "p03",
       .stream = "order-" + std::string(180, 'n'),
       .message = "publishing to " + std::string(200, 's') + ": Maximum Payload Exceeded",
       .others = 21}};
  for (const Size size : {Size{60, 60}, Size{80, 60}, Size{120, 60}, Size{200, 60}}) {
    const std::string screen = drawn(view, size);
    EXPECT_THAT(screen, HasSubstr("Maximum Payload Exceeded")) << screen;
    EXPECT_THAT(screen, HasSubstr("22:13:20Z  p03  4711  order-nnn"));
    EXPECT_THAT(screen, HasSubstr("(and 21 more)"));
  }
}

TEST_F(DashboardLayout, HasAllOfAnErrorThatFitsIntoThreeLinesMore) {
  View view = busy_view();
  view.errors = {{.at = now,
                  .subject = "p03",
                  .message =
                      "BEGIN IMMEDIATE failed: process 4711 held the database's lock for too "
                      "long; try again"}};
  const std::string screen = squeezed(drawn(view, {80, 60}));
  EXPECT_THAT(screen, HasSubstr("BEGIN IMMEDIATE failed: process 4711 held the"));
  EXPECT_THAT(screen, HasSubstr("long; try again"));
}

TEST(DashboardKeys, ScrollSortShowAndLeave) {
  Looks looks;
  take_key(looks, key_down, 10);
  take_key(looks, 'j', 10);
  EXPECT_EQ(looks.scroll, 2U);
  take_key(looks, key_page_down, 10);
  EXPECT_EQ(looks.scroll, 11U);
  take_key(looks, key_page_up, 10);
  take_key(looks, key_up, 10);
  EXPECT_EQ(looks.scroll, 1U);
  take_key(looks, 'k', 10);
  take_key(looks, 'k', 10);
  EXPECT_EQ(looks.scroll, 0U);
  for (const SortKey wanted :
       {SortKey::oldest, SortKey::parked, SortKey::owner, SortKey::label, SortKey::pending}) {
    take_key(looks, 's', 10);
    EXPECT_EQ(looks.sort, wanted);
  }
  take_key(looks, 'a', 10);
  EXPECT_TRUE(looks.shows_all);
  EXPECT_TRUE(take_key(looks, 'q', 10));
}

TEST(DashboardKeys, AreTextWhileAFilterIsTyped) {
  Looks looks;
  for (const int key : {int{'/'}, int{'q'}, int{'s'}, key_backspace, int{'7'}, int{'\n'}}) {
    EXPECT_FALSE(take_key(looks, key, 10));
  }
  EXPECT_EQ(looks.filter, "q7");
  EXPECT_FALSE(looks.typing);
  take_key(looks, key_escape, 10);
  EXPECT_EQ(looks.filter, "");
}

OutboxStatus seen_at(Timestamp at, std::int64_t published, std::int64_t waiting) {
  return {.at = at, .pending = waiting, .published = published};
}

TEST(OutboxTrend, SaysHowLongDrainingTakes) {
  Trend trend;
  trend.add(seen_at(now, 100, 1'000));
  EXPECT_FALSE(trend.pace().time_to_drain);
  trend.add(seen_at(now + 10s, 400, 800));
  EXPECT_EQ(trend.throughput().speeds[Throughput::all][0], 30);
  EXPECT_EQ(trend.pace().growth, -20);
  EXPECT_EQ(trend.pace().time_to_drain, 40s);
  // Only the last minute counts.
  trend.add(seen_at(now + 70s, 400, 1'400));
  EXPECT_EQ(trend.throughput().speeds[Throughput::all][0], 0);
  EXPECT_EQ(trend.pace().growth, 10);
  EXPECT_FALSE(trend.pace().time_to_drain);
}

TEST(OutboxTrend, SaysNothingOfABacklogThatWasNotCounted) {
  Trend trend;
  OutboxStatus status = seen_at(now, 100, 10'000);
  status.is_pending_lower_bound = true;
  trend.add(status);
  status.at += 10s;
  status.published = 400;
  trend.add(status);
  EXPECT_EQ(trend.throughput().speeds[Throughput::all][0], 30);
  EXPECT_EQ(trend.pace().growth, 0);
  trend.add(seen_at(now + 20s, 1'000, 1'000));
  EXPECT_FALSE(trend.pace().time_to_drain) << "it was seen once";
  trend.add(seen_at(now + 30s, 1'500, 500));
  EXPECT_EQ(trend.pace().growth, -50);
  EXPECT_EQ(trend.pace().time_to_drain, 10s);
}

TEST(OutboxTrend, CountsNoMessagesOfStoppedPartitionsAsDraining) {
  Trend trend;
  trend.add(seen_at(now, 100, 1'000));
  OutboxStatus status = seen_at(now + 10s, 400, 800);
  status.partitions = {{.pending = 300, .redeliveries = 100, .stopped = StopReason::broker_lost}};
  trend.add(status);
  EXPECT_EQ(trend.pace().time_to_drain, 20s);
  status = seen_at(now + 20s, 600, 400);
  status.partitions = {{.pending = 400, .stopped = StopReason::broker_lost}};
  trend.add(status);
  EXPECT_FALSE(trend.pace().time_to_drain);
}

TEST(OutboxTrend, BeginsAgainIfTheDatabaseWentBack) {
  Trend trend;
  trend.add(seen_at(now, 100, 1'000));
  trend.add(seen_at(now + 10s, 50, 1'000));
  EXPECT_FALSE(trend.throughput().speeds[Throughput::all][0]);
  trend.add(seen_at(now + 20s, 150, 1'000));
  EXPECT_EQ(trend.throughput().speeds[Throughput::all][0], 10);
}

TEST(OutboxTrend, KnowsSpeedsOfOneFiveAndSixtyMinutes) {
  Trend trend;
  trend.add(seen_at(now, 1'000, 0), {.claimed = 10, .published = 9, .retried = 1});
  trend.add(seen_at(now + 1min, 1'600, 0),
            {.claimed = 610, .published = 309, .retried = 1, .parked = 60});
  Throughput seen = trend.throughput();
  EXPECT_EQ(seen.speeds[Throughput::all], (Speed{10, {}, {}})) << "no more is known than a minute";
  EXPECT_EQ(seen.speeds[Throughput::claimed], (Speed{10, {}, {}}));
  EXPECT_EQ(seen.speeds[Throughput::published], (Speed{5, {}, {}}));
  EXPECT_EQ(seen.speeds[Throughput::failed], (Speed{1, {}, {}}));
  trend.add(seen_at(now + 2min, 1'600, 0));
  trend.add(seen_at(now + 10min, 1'600, 0));
  EXPECT_EQ(trend.throughput().speeds[Throughput::all], (Speed{0, 0, 1}));
}

TEST(OutboxTrend, KnowsTheLastHourFromTheLogOfBatches) {
  Trend trend;
  OutboxStatus status = seen_at(now, 1'000, 0);
  const std::vector<PublishedBatch> batches{{.count = 120, .published_at = now - 30s},
                                            {.count = 240, .published_at = now - 10min},
                                            {.count = 300, .published_at = now - 2h}};
  trend.add_past(status, batches, true);
  trend.add(status);
  const Throughput seen = trend.throughput();
  EXPECT_EQ(seen.speeds[Throughput::all], (Speed{2, 0.4, 0.1}));
  EXPECT_EQ(seen.now, 0);
  double sum = 0;
  for (const auto& piece : seen.curve) sum += piece.value_or(0) > 0 ? 1 : 0;
  EXPECT_EQ(sum, 2) << "it is drawn where it was published";
  EXPECT_EQ(seen.curve[10], 0) << "and nothing where nothing was";
}

TEST(OutboxTrend, CountsNoBatchThatIsNewerThanTheStatus) {
  Trend trend;
  OutboxStatus status = seen_at(now, 1'000, 0);
  status.partitions = {{.id = {1}, .published_through = GlobalSequence{1'000}}};
  trend.add_past(
      status,
      {{.partition = {1}, .last = GlobalSequence{1'060}, .count = 60, .published_at = now},
       {.partition = {1}, .last = GlobalSequence{1'000}, .count = 120, .published_at = now - 30s}},
      true);
  trend.add(status);
  EXPECT_EQ(trend.throughput().speeds[Throughput::all][0], 2);
}

TEST(OutboxTrend, DrawsNothingWhereNothingIsKnown) {
  Trend trend;
  trend.add_past(seen_at(now, 100, 0), {{.count = 60, .published_at = now - 5min}}, false);
  trend.add(seen_at(now, 100, 0));
  const Throughput seen = trend.throughput();
  EXPECT_FALSE(seen.curve[20]);
  EXPECT_EQ(seen.curve[28], 0);
  EXPECT_FALSE(seen.speeds[Throughput::all][2]);
}

TEST_F(DashboardLayout, NamesTheState) {
  const View view = busy_view();
  Figures done = view.own->done;
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
  done.broker = BrokerStatus{BrokerState::down, "refused"};
  EXPECT_EQ(state_of(done, view.status, false), "broker down");
  done.broker = BrokerStatus{BrokerState::misconfigured, "there is no JetStream stream 'SHOP'"};
  EXPECT_EQ(state_of(done, view.status, false), "misconfigured");
}

}  // namespace
}  // namespace stela::tool::layout_test
