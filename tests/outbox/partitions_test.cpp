#include "outbox/shop.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::partitions_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PartitionId all{0};

TEST(OutboxResize, PublishesTheOldGenerationFirst) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-1"});
  const Resized resized = shop.operations.resize(4);
  EXPECT_EQ(resized.before, 1);
  EXPECT_EQ(resized.after, 4);
  EXPECT_EQ(resized.generation, 2);
  shop.append_all({"order-1", "order-2", "order-3"});

  const auto before = shop.operations.status();
  EXPECT_FALSE(before.generations[0].is_drained);
  EXPECT_EQ(before.partition_count, 4);
  shop.relay();
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3");
  std::string order_1;
  const PartitionId place = PartitionId::of("order-1", 4);
  EXPECT_THAT(shop.broker.log(place), HasSubstr("4"));
  EXPECT_EQ(shop.totals(), "6 published");
  EXPECT_TRUE(shop.operations.status().generations[0].is_drained);
  EXPECT_THAT(shop.actions(), ElementsAre("ann resize 1 to 4 partitions from 4 on"));
}

TEST(OutboxResize, LeavesAWorkerAliveWhoseLeaseOfAnOldPartitionRanOut) {
  Shop shop{{.partition_count = 4}, {.worker = "w1"}};
  shop.relay();
  shop.operations.resize(2);
  shop.relay();
  // It couldn't give the partition back, and nobody will ever take it.
  shop.raw().run("UPDATE outbox_partitions SET owner = 'w1', lease_until = 1 WHERE partition = 4");
  test::FileBroker broker{shop.dir.file("broker.db"), Fence::stream};
  Relay other{shop.outbox, broker, {.worker = "w2"}};

  const RelayTick tick = other.run_once();
  EXPECT_EQ(tick.active_workers, 2);
  EXPECT_EQ(tick.desired_count, 1);
}

// The settings of docs/guides/operate.md.
const RelayOptions short_leases{.worker = "short",
                                .lease_ttl = 3s,
                                .lease_renew = 1s,
                                .heartbeat_ttl = 4s,
                                .publish_timeout = 2s};

std::vector<std::string> workers_of(Shop& shop) {
  std::vector<std::string> names;
  for (const WorkerStatus& worker : shop.operations.status().workers) names.push_back(worker.name);
  return names;
}

TEST(OutboxLeases, AreLeftToADefaultRelayByOneWithShorterLeases) {
  Shop shop{{}, {.worker = "default"}};
  shop.append("order-1");
  ASSERT_EQ(shop.relay().published, 1);
  test::FileBroker broker{shop.dir.file("broker.db"), Fence::stream};
  Relay other{shop.outbox, broker, short_leases};

  const RelayTick tick = other.run_once();

  EXPECT_EQ(tick.owned_count, 0);
  EXPECT_EQ(tick.active_workers, 2);
  EXPECT_THAT(workers_of(shop), ElementsAre("default", "short"));
  EXPECT_EQ(shop.operations.status().partitions.front().owner, "default");
  shop.append("order-2");
  EXPECT_EQ(shop.relay().published, 1) << "the default relay still has its partition";
}

TEST(OutboxLeases, AreSharedAmongRelaysOfOldAndNewSettings) {
  Shop shop{{.partition_count = 2}, {.worker = "a"}};
  ASSERT_EQ(shop.relay().owned_count, 2);
  test::FileBroker broker{shop.dir.file("broker.db"), Fence::stream};
  Relay other{shop.outbox, broker, short_leases};

  RelayTick tick;
  for (int second = 0; second < 20; ++second) {
    const std::int64_t owned = shop.relay().owned_count;
    tick = other.run_once();
    EXPECT_LE(owned + tick.owned_count, 2) << second;
  }

  EXPECT_EQ(tick.owned_count, 1);
  EXPECT_EQ(shop.relay().owned_count, 1);
}

TEST(OutboxLeases, CountAWorkerUnlessItsHeartbeatIsAbsurd) {
  Shop shop{{.partition_count = 2}, short_leases};
  const auto beat = [&](std::chrono::seconds length) {
    const auto until = (shop.clock.now() + length).time_since_epoch().count();
    shop.raw().run(
        "INSERT OR REPLACE INTO outbox_workers (worker, host, pid, presence, started_at, "
        "heartbeat_until, heartbeat_ttl, broker, broker_since, is_cut_off) "
        "VALUES ('other', 'elsewhere.invalid', 1, -1, 0, " +
        std::to_string(until) + ", 60000000, 'connected', 0, 0)");
  };
  const auto is_alive = [&] { return shop.operations.status().workers.front().is_alive; };

  beat(60s);
  EXPECT_TRUE(is_alive());
  EXPECT_EQ(shop.relay().active_workers, 2);
  beat(24h);
  EXPECT_FALSE(is_alive());
  EXPECT_EQ(shop.relay().active_workers, 1);
  EXPECT_THAT(workers_of(shop), ElementsAre("short"));
}

TEST(OutboxResize, RefusesImpossibleCounts) {
  Shop shop;
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.resize(0); }),
              HasSubstr("partition_count is 1 to 1024, not 0"));
  EXPECT_EQ(shop.operations.resize(1).generation, 1);
  EXPECT_THAT(shop.actions(), IsEmpty());
}

TEST(OutboxSync, RetiresDrainedPartitionsAndRestoresThem) {
  Shop shop{{.partition_count = 2}};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  shop.operations.resize(1);
  shop.lose_relay();

  EXPECT_THAT(shop.operations.sync(true, Mode::dry_run).retired, SizeIs(2));
  EXPECT_THAT(shop.operations.status().partitions, SizeIs(3));
  EXPECT_THAT(shop.operations.sync(true).retired, SizeIs(2));
  EXPECT_THAT(shop.operations.status().partitions, SizeIs(1));

  shop.append("order-1");
  shop.operations.resize(2);
  shop.append("order-1");
  shop.relay();
  shop.relay();

  EXPECT_THAT(shop.operations.status().partitions, SizeIs(3));
  EXPECT_EQ(shop.broker.log(all), "4");
  EXPECT_THAT(shop.broker.log(PartitionId::of("order-1", 2)), HasSubstr("5"));
  EXPECT_EQ(shop.operations.status().pending, 0);
}

TEST(OutboxSync, KeepsAPartitionWithParkedMessages) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.operations.resize(2);
  shop.lose_relay();

  const Synced synced = shop.operations.sync(true);
  EXPECT_THAT(synced.parked, ElementsAre(all));
  EXPECT_THAT(synced.retired, IsEmpty());
  EXPECT_EQ(shop.totals(), "1 parked");

  shop.operations.discard({.all = true});
  EXPECT_THAT(shop.operations.sync(true).retired, ElementsAre(all));
}

TEST(OutboxSync, CountsParkedMessagesOfRetiredPartitions) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.operations.resize(2);
  shop.lose_relay();
  shop.raw().run("UPDATE outbox_partitions SET retired_at = 1 WHERE partition = 0");

  EXPECT_EQ(shop.totals(), "1 parked");
  shop.operations.retry({.all = true});
  shop.too_large.clear();
  shop.relay();
  shop.relay();
  EXPECT_EQ(shop.totals(), "1 published");
  EXPECT_THAT(shop.operations.status().partitions, SizeIs(2));
}

/// The broker loses the two messages that it has, and the third one can't follow them.
PartitionStatus stop_by_a_loss(Shop& shop) {
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.broker.database().run("DELETE FROM stored");
  shop.lose_relay();
  shop.append("order-3");
  shop.relay_until_stopped();
  PartitionStatus stopped = shop.operations.status().partitions.front();
  EXPECT_EQ(stopped.stopped, StopReason::broker_lost);
  return stopped;
}

TEST(OutboxAdopt, LetsAPartitionContinueWithARebuiltBroker) {
  Shop shop;
  const PartitionStatus stopped = stop_by_a_loss(shop);
  EXPECT_THAT(stopped.stopped_detail, HasSubstr("was at broker sequence 2, and the broker has "
                                                "nothing"));

  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.resume(all); }),
              HasSubstr("partition all is stopped by broker_lost"));
  shop.operations.adopt(all, 0);
  shop.operations.republish({.to = GlobalSequence{2}});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1r1 2r2 3");
  EXPECT_THAT(shop.actions(), ElementsAre("ann adopt all at 0, stopped by broker_lost",
                                          "ann republish 2 messages, 1 to 2"));
}

/// Other partitions' messages stand in the same stream, and of its own an older server tells
/// nothing.
TEST(OutboxStop, SaysNoMoreThanThatTheLastMessageOfASubjectIsGone) {
  Shop shop{{.fence = Fence::subject}};
  const PartitionStatus stopped = stop_by_a_loss(shop);
  EXPECT_THAT(stopped.stopped_detail,
              HasSubstr("was at broker sequence 2, and the broker has no message of its subject "
                        "from there on: was the last one removed?"));
}

TEST(OutboxAdopt, RefusesAPartitionThatIsNotStopped) {
  Shop shop;
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.adopt(all, 3); }),
              HasSubstr("partition all isn't stopped"));
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.adopt(PartitionId{5}); }),
              HasSubstr("there is no partition p04"));
}

}  // namespace
}  // namespace stela::partitions_test
