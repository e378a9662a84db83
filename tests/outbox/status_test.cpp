#include "database/database.hpp"
#include "outbox/shop.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::status_test {
namespace {

using test::message_of;
using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(OutboxStatus, CountsPendingAndPublishedMessages) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-1"});
  EXPECT_EQ(shop.totals(), "3 pending");

  shop.relay();
  shop.append_all({"order-3", "order-3"});

  EXPECT_EQ(shop.totals(), "2 pending, 3 published");
}

TEST(OutboxStatus, CountsPendingMessagesUpToALimit) {
  Shop shop;
  const std::vector<NewEvent> placed(most_counted_pending / 2, NewEvent{"placed", 1, true, "{}"});
  test::append(shop.store, "order-1", placed);
  test::append(shop.store, "order-2", placed);
  EXPECT_EQ(shop.operations.status().pending, most_counted_pending);
  EXPECT_FALSE(shop.operations.status().is_pending_lower_bound);

  shop.append("order-1");

  const OutboxStatus status = shop.operations.status();
  EXPECT_EQ(status.pending, most_counted_pending);
  EXPECT_TRUE(status.is_pending_lower_bound);
  EXPECT_EQ(status.partitions.front().pending, most_counted_pending);
  EXPECT_TRUE(status.partitions.front().is_pending_lower_bound);
}

TEST(OutboxStatus, TellsOfEachPartitionAndItsOwner) {
  Shop shop{{.partition_count = 2}, {.worker = "w1"}};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  shop.append("order-1");
  shop.clock.advance(std::chrono::seconds{7});

  const OutboxStatus status = shop.operations.status();
  ASSERT_THAT(status.partitions, SizeIs(2));
  const bool first = PartitionId::of("order-1", 2) == PartitionId{1};
  const PartitionStatus& waiting = status.partitions[first ? 0 : 1];
  EXPECT_EQ(waiting.owner, "w1");
  EXPECT_EQ(waiting.epoch, 1);
  EXPECT_EQ(waiting.lease_left, std::chrono::seconds{15 - 7});
  EXPECT_EQ(waiting.pending, 1);
  EXPECT_EQ(waiting.oldest, GlobalSequence{4});
  EXPECT_EQ(status.lag, std::chrono::seconds{7});
  EXPECT_EQ(status.partitions[first ? 1 : 0].pending, 0);
  ASSERT_THAT(status.workers, SizeIs(1));
  EXPECT_EQ(status.workers.front().name, "w1");
  EXPECT_TRUE(status.workers.front().is_alive);
  EXPECT_EQ(status.workers.front().partitions, 2);
}

TEST(OutboxStatus, IncludesRedeliveriesInTheLag) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.clock.advance(std::chrono::minutes{5});
  shop.operations.republish({.stream = "order-1"});
  shop.clock.advance(std::chrono::seconds{7});
  shop.append("order-3");
  shop.operations.republish({.stream = "order-2"});
  shop.clock.advance(std::chrono::seconds{2});

  const OutboxStatus status = shop.operations.status();
  EXPECT_EQ(status.lag, std::chrono::seconds{9});
  ASSERT_THAT(status.partitions, SizeIs(1));
  EXPECT_EQ(status.partitions[0].waiting_since, status.at - std::chrono::seconds{9});
  EXPECT_EQ(status.partitions[0].oldest_recorded_at, status.at - std::chrono::seconds{2});
}

TEST(OutboxStatus, TellsWhichWorkersProcessesRun) {
  Shop shop;
  const auto running = shop.store.database().appear();
  const std::string ended = std::to_string(shop.store.database().appear()->number());
  shop.raw().run(
      "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES ('a', 'h', 1, " +
      std::to_string(running->number()) + ", 0, 1, 1, 'connected', 0, 0), ('b', 'h', 2, " + ended +
      ", 0, 1, 1, 'connected', 0, 0), ('c', 'elsewhere', 1, -1, 0, 1, 1, 'connected', 0, 0)");

  std::vector<WorkerProcess> processes;
  for (const WorkerStatus& worker : shop.operations.status().workers) {
    processes.push_back(worker.process);
  }
  EXPECT_THAT(processes,
              ElementsAre(WorkerProcess::runs, WorkerProcess::ended, WorkerProcess::unknown));
}

TEST(OutboxStatus, TellsNothingOfARelayThatEnded) {
  for (const OutboxOptions& options :
       {OutboxOptions{}, OutboxOptions{.fence = Fence::none, .leasing = false}}) {
    Shop shop{options};
    shop.append("order-1");
    EXPECT_EQ((Relay{shop.outbox, shop.broker}.run_once().published), 1);

    shop.append("order-1");

    EXPECT_THAT(shop.operations.status().workers, IsEmpty());
    EXPECT_EQ((Relay{shop.outbox, shop.broker}.run_once().published), 1)
        << "no lease has to run out";
  }
}

TEST(OutboxStatus, StaysExactWhenTheLastOfAPartitionIsParked) {
  Shop shop;
  shop.too_large = {3};
  shop.rejected = {1};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  EXPECT_EQ(shop.totals(), "3 pending");

  shop.rejected.clear();
  shop.clock.advance(std::chrono::minutes{2});
  shop.relay();
  shop.append_all({"order-4", "order-5"});

  EXPECT_EQ(shop.totals(), "2 pending, 1 parked, 2 published");
}

TEST(OutboxStatus, RefusesADatabaseWithoutOne) {
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  EXPECT_THAT(message_of<UsageError>([&] { OutboxOperations{store}; }),
              HasSubstr("this database has no outbox"));
}

TEST(OutboxList, ShowsEachStateInOrder) {
  Shop shop;
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  shop.append_all({"order-2", "order-1"});

  EXPECT_THAT(shop.list(),
              ElementsAre("2 order-2 parked refused", "4 order-2 pending", "5 order-1 pending"));
  EXPECT_THAT(shop.list({.state = MessageState::published}),
              ElementsAre("1 order-1 published", "3 order-3 published"));
  EXPECT_THAT(shop.list({.state = MessageState::parked}), ElementsAre("2 order-2 parked refused"));
  EXPECT_THAT(shop.list({.stream = "order-2"}),
              ElementsAre("2 order-2 parked refused", "4 order-2 pending"));
  EXPECT_THAT(shop.list({.state = MessageState::published, .stream = "order-1"}),
              ElementsAre("1 order-1 published"));
  EXPECT_THAT(shop.list({.after = GlobalSequence{2}, .limit = 1}),
              ElementsAre("4 order-2 pending"));
}

TEST(OutboxList, PagesThroughSeveralPartitions) {
  Shop shop{{.partition_count = 4}};
  for (int i = 0; i < 20; ++i) shop.append("order-" + std::to_string(i));

  std::vector<std::int64_t> seen;
  MessageQuery query{.limit = 3};
  for (auto page = shop.operations.list(query); !page.empty(); page = shop.operations.list(query)) {
    for (const auto& message : page) seen.push_back(message.sequence.value());
    query.after = page.back().sequence;
  }

  ASSERT_THAT(seen, SizeIs(20));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(OutboxList, PagesFromTheNewestToTheOldest) {
  Shop shop{{.partition_count = 4}};
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  shop.append_all({"order-2", "order-1"});

  MessageQuery query{.direction = Direction::backward, .limit = 2};
  const MessagePage newest = shop.operations.page(query);
  EXPECT_THAT(shop.list(query), ElementsAre("5 order-1 pending", "4 order-2 pending"));
  EXPECT_EQ(newest.next, GlobalSequence{4});
  query.after = GlobalSequence{4};
  EXPECT_THAT(shop.list(query), ElementsAre("2 order-2 parked refused"));
  EXPECT_FALSE(shop.operations.page(query).next);
  EXPECT_THAT(shop.list({.state = MessageState::published, .direction = Direction::backward}),
              ElementsAre("3 order-3 published", "1 order-1 published"));
  EXPECT_THAT(shop.list({.stream = "order-2", .direction = Direction::backward}),
              ElementsAre("4 order-2 pending", "2 order-2 parked refused"));
}

TEST(OutboxList, EndsWhereItHasLookedAtEnough) {
  Shop shop{{.partition_count = 4}};
  for (int i = 0; i < 20; ++i) shop.append("order-" + std::to_string(i));

  MessageQuery query{.error = "no such error", .limit = 1, .most_looked = 5};
  const MessagePage page = shop.operations.page(query);
  EXPECT_THAT(page.messages, IsEmpty());
  EXPECT_EQ(page.looked, 5);
  EXPECT_EQ(page.next, GlobalSequence{5});
  query.direction = Direction::backward;
  EXPECT_EQ(shop.operations.page(query).next, GlobalSequence{16});
  query.after = GlobalSequence{4};
  EXPECT_FALSE(shop.operations.page(query).next) << "only three come after it";
}

TEST(OutboxList, IsOfTheTimesOfItsEvents) {
  Shop shop;
  shop.append("order-1");
  shop.clock.advance(std::chrono::hours{1});
  const Timestamp noon = shop.clock.now();
  shop.append("order-2");

  EXPECT_THAT(shop.list({.since = noon}), ElementsAre("2 order-2 pending"));
  EXPECT_THAT(shop.list({.until = noon - std::chrono::seconds{1}}),
              ElementsAre("1 order-1 pending"));
}

TEST(OutboxList, RefusesAPartitionThatDoesNotExist) {
  Shop shop;
  shop.append("order-1");
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.list({.partition = PartitionId{99}}); }),
              HasSubstr("there is no partition p98"));
  shop.raw().run("UPDATE outbox_messages SET partition = 99");
  EXPECT_THAT(shop.operations.list({.partition = PartitionId{99}}), SizeIs(1));
}

TEST(OutboxShow, TellsWhenAMessageWasPublished) {
  Shop shop;
  shop.append("order-1");
  shop.relay();
  const Timestamp published = shop.clock.now();
  shop.clock.advance(std::chrono::hours{1});

  const auto message = shop.operations.show(GlobalSequence{1});
  ASSERT_TRUE(message);
  EXPECT_EQ(message->state, MessageState::published);
  EXPECT_EQ(message->since, published);
  EXPECT_EQ(message->stream, "order-1");
  EXPECT_EQ(message->type, "placed");
  EXPECT_EQ(message->version, StreamVersion{1});
}

TEST(OutboxShow, KnowsNothingOfLocalEvents) {
  Shop shop;
  test::append(shop.store, "order-1", {NewEvent{"noted", 1, false, "{}"}});
  EXPECT_FALSE(shop.operations.show(GlobalSequence{1}));
  EXPECT_FALSE(shop.operations.show(GlobalSequence{7}));
}

}  // namespace
}  // namespace stela::status_test
