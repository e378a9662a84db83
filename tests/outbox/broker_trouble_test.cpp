// How a relay asks a broker that isn't set up as it should be.
#include "outbox/shop.hpp"
#include "support/print_enums.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace stela::broker_trouble_test {
namespace {

using namespace std::chrono_literals;
using test::FileBroker;
using test::Shop;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;

constexpr PartitionId all{0};

const RelayOptions probing{.retry_backoff = 1s, .retry_backoff_max = 60s};

/// Of five minutes: the waits between probes are 1, 2, 4, 8, 16 seconds and so on up to 30 or 60,
/// give or take a quarter.
constexpr auto few = [](int probes) { return probes >= 7 && probes <= 20; };

/// In how many of so many seconds the broker had to say no.
int probes_in(Shop& shop, int seconds) {
  int probes = 0;
  for (int second = 0; second < seconds; ++second) {
    shop.broker.misfits = 0;
    shop.relay();
    if (shop.broker.misfits > 0) ++probes;
  }
  return probes;
}

std::int64_t how_often(const std::vector<std::string>& entries, std::string_view what) {
  return std::count_if(entries.begin(), entries.end(), [&](const std::string& entry) {
    return entry.find(what) != std::string::npos;
  });
}

class BrokerTrouble : public ::testing::TestWithParam<Fence> {
 protected:
  /// It was asked ever more slowly, nothing was charged, and what waits goes when it is mended.
  void expect_patience(Shop& shop) {
    EXPECT_PRED1(few, probes_in(shop, 300));
    EXPECT_EQ(shop.relay().broker.state, BrokerState::misconfigured);
    EXPECT_EQ(shop.totals(), "1 pending");
    EXPECT_EQ(shop.raw().integer("SELECT max(attempts) FROM outbox_messages"), 0);
    EXPECT_THAT(shop.log.entries(), Each(Not(HasSubstr("relay.parked"))));

    shop.broker.mend();
    for (int second = 0; second < 80; ++second) shop.relay();
    EXPECT_EQ(shop.broker.log(PartitionId{0}), "1");
    EXPECT_TRUE(shop.relay().broker.is_connected());
    EXPECT_THAT(shop.log.entries().back(), HasSubstr("relay.broker_back"));
  }
};

INSTANTIATE_TEST_SUITE_P(EveryFence, BrokerTrouble,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(BrokerTrouble, WithoutAStreamItIsAskedEverMoreSlowly) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  shop.broker.without_stream.insert(PartitionId{0});
  expect_patience(shop);
  EXPECT_EQ(how_often(shop.log.entries(), "relay.misconfigured"), 1);
}

TEST_P(BrokerTrouble, WhereMessagesAreRefusedAndReadsAnsweredItIsAskedEverMoreSlowly) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  shop.broker.is_sealed = true;
  expect_patience(shop);
}

TEST_P(BrokerTrouble, WhereTheSessionIsRefusedItIsAskedEverMoreSlowly) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  shop.broker.forbids_publishing = true;
  expect_patience(shop);
}

TEST_P(BrokerTrouble, WhereItCannotBeReachedItIsTriedEveryFewSecondsHoweverLong) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  shop.broker.is_down = true;
  for (int second = 0; second < 300; ++second) shop.relay();
  EXPECT_EQ(shop.relay().broker.state, BrokerState::down);
  // Every 5 s, give or take a quarter.
  EXPECT_THAT(shop.broker.sessions, AllOf(Ge(45), Le(85)));

  shop.broker.is_down = false;
  for (int second = 0; second < 8; ++second) shop.relay();
  EXPECT_EQ(shop.totals(), "1 published");
}

TEST_P(BrokerTrouble, WhereEachSessionEndsWithItsFirstMessageSessionsAreOpenedEverMoreSlowly) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  bool ends = true;
  shop.broker.refuse = [&](const OutgoingMessage&) -> std::optional<Answer::Kind> {
    if (ends) return Answer::Kind::disconnected;
    return std::nullopt;
  };
  for (int second = 0; second < 300; ++second) shop.relay();

  EXPECT_PRED1(few, shop.broker.sessions);
  // With a fence what is read back says each time that the broker is back.
  EXPECT_LE(how_often(shop.log.entries(), "relay.broker_"), 2 * shop.broker.sessions);
  EXPECT_EQ(shop.totals(), "1 pending");
  EXPECT_EQ(shop.raw().integer("SELECT max(attempts) FROM outbox_messages"), 0);

  ends = false;
  for (int second = 0; second < 40; ++second) shop.relay();
  EXPECT_EQ(shop.totals(), "1 published");
}

TEST_P(BrokerTrouble, IsNotSupposedWhereThereIsNothingToAsk) {
  Shop shop{{.fence = GetParam()}};
  for (int second = 0; second < 300; ++second) {
    shop.relay();
    EXPECT_FALSE(shop.operations.status().workers.front().is_cut_off);
  }
  EXPECT_EQ(shop.broker.sessions, 1);
}

TEST_P(BrokerTrouble, LongPastDoesNotSlowTheProbesOfToday) {
  Shop shop{{.fence = GetParam()}, probing};
  shop.append("order-1");
  shop.broker.forbids_publishing = true;
  EXPECT_PRED1(few, probes_in(shop, 300));
  shop.broker.mend();
  for (int second = 0; second < 80; ++second) shop.relay();
  EXPECT_EQ(shop.totals(), "1 published");

  // A connection that broke says nothing of what is allowed.
  shop.append("order-1");
  bool breaks = true;
  shop.broker.refuse = [&](const OutgoingMessage&) -> std::optional<Answer::Kind> {
    if (std::exchange(breaks, false)) return Answer::Kind::disconnected;
    return std::nullopt;
  };
  shop.relay();
  EXPECT_FALSE(breaks);
  shop.broker.forbids_publishing = true;
  shop.append("order-1");
  EXPECT_GE(probes_in(shop, 9), 3);
}

TEST_P(BrokerTrouble, OnePartitionsTroubleHoldsNoOther) {
  Shop shop{{.partition_count = 2, .fence = GetParam()}, probing};
  const PartitionId sick = PartitionId::at(1, 2);
  const PartitionId well = PartitionId::at(0, 2);
  for (int i = 0; i < 8; ++i) shop.append("order-" + std::to_string(i));
  shop.broker.without_stream.insert(sick);
  EXPECT_PRED1(few, probes_in(shop, 300));

  const std::string before = shop.broker.log(well);
  for (int i = 0; i < 8; ++i) shop.append("order-" + std::to_string(i));
  // Until the next probe is far: what can go goes at once.
  const RelayTick tick = shop.relay();
  EXPECT_GT(tick.published, 0);
  EXPECT_GT(shop.broker.log(well).size(), before.size());
  EXPECT_EQ(shop.broker.log(sick), "");
  EXPECT_EQ(tick.broker, (BrokerStatus{BrokerState::misconfigured, "there is no stream"}));

  shop.broker.mend();
  for (int second = 0; second < 80; ++second) shop.relay();
  EXPECT_EQ(shop.totals(), "16 published");
  EXPECT_TRUE(shop.relay().broker.is_connected());
  EXPECT_EQ(how_often(shop.log.entries(), "relay.misconfigured"), 1);
}

/// A server behind a half-open line, or one that is cut off from its cluster. Another worker's
/// isn't.
class UnansweredWorker : public ::testing::TestWithParam<bool FileBroker::*> {
 protected:
  UnansweredWorker() {
    shop.append("order-1");
    shop.relay();
    shop.broker.*GetParam() = true;
    shop.broker.when_silent = [&] { shop.clock.advance(RelayOptions{}.publish_timeout); };
    shop.append("order-2");
  }
  /// Both workers work; each silence adds to the time.
  void pass(std::chrono::seconds time) {
    for (const auto end = shop.clock.steady_now() + time; shop.clock.steady_now() < end;) {
      shop.relay();
      other.run_once();
    }
  }
  bool is_cut_off() {
    const auto workers = shop.operations.status().workers;
    return std::any_of(workers.begin(), workers.end(), [](const WorkerStatus& worker) {
      return worker.name == "first" && worker.is_cut_off;
    });
  }

  std::int64_t epoch_of_all() {
    return shop.raw().integer("SELECT epoch FROM outbox_partitions WHERE partition = 0");
  }

  Shop shop{{}, {.worker = "first"}};
  FileBroker others_server{shop.dir.file("broker.db"), Fence::stream};
  Relay other{shop.outbox, others_server, {.worker = "other"}};
};

INSTANTIATE_TEST_SUITE_P(All, UnansweredWorker,
                         ::testing::Values(&FileBroker::is_deaf, &FileBroker::is_isolated),
                         [](const auto& each) {
                           return each.param == &FileBroker::is_deaf ? "ByAnything" : "ByStreams";
                         });

TEST_P(UnansweredWorker, LeavesItsPartitionsToOneThatIsAnswered) {
  pass(90s);
  EXPECT_EQ(shop.broker.log(all), "1 2");

  shop.broker.*GetParam() = false;
  pass(10min);
  EXPECT_FALSE(is_cut_off());
  EXPECT_TRUE(shop.relay().broker.is_connected());
}

/// A server that answers nothing but probes gets no partition to hold up.
TEST_P(UnansweredWorker, TakesNoPartBeforeItIsAnsweredForAPartition) {
  pass(90s);
  const std::int64_t epoch = epoch_of_all();
  pass(30min);

  EXPECT_EQ(epoch_of_all(), epoch);
  EXPECT_TRUE(is_cut_off());
}

}  // namespace
}  // namespace stela::broker_trouble_test
