#include "outbox/shop.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela {
namespace {

using test::message_of;
using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PartitionId all{0};

// --- looking

TEST(OutboxStatus, CountsWhatWaitsAndWhatWasPublished) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-1"});
  EXPECT_EQ(shop.totals(), "3 pending");

  shop.relay();
  shop.append_all({"order-3", "order-3"});

  EXPECT_EQ(shop.totals(), "2 pending, 3 published");
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

TEST(OutboxStatus, TellsNothingOfARelayThatEnded) {
  for (const OutboxOptions& options :
       {OutboxOptions{}, OutboxOptions{.fence = Fence::none, .leasing = false}}) {
    Shop shop{options};
    shop.append("order-1");
    EXPECT_EQ((Relay{shop.outbox, shop.broker}.tick().published), 1);

    shop.append("order-1");

    EXPECT_THAT(shop.operations.status().workers, IsEmpty());
    EXPECT_EQ((Relay{shop.outbox, shop.broker}.tick().published), 1) << "no lease has to run out";
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

// --- retry

TEST(OutboxRetry, SendsParkedMessagesAgainInOrder) {
  Shop shop;
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2", "order-2", "order-1"});
  shop.relay();
  EXPECT_THAT(shop.list(), ElementsAre("2 order-2 parked refused", "3 order-2 parked behind"));

  shop.too_large.clear();
  const Affected affected = shop.operations.retry({.stream = "order-2"});
  EXPECT_EQ(affected.messages, 2);
  EXPECT_EQ(affected.streams, 1);
  EXPECT_THAT(shop.list(), ElementsAre("2 order-2 pending r1", "3 order-2 pending r2"));
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 4 2r1 3r2");
  EXPECT_EQ(shop.totals(), "4 published");
  EXPECT_THAT(shop.actions(), ElementsAre("ann retry order-2: 2 messages, 2 to 3"));
}

TEST(OutboxRetry, TakesOnlyThePrefixOfAStream) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1", "order-1"});
  shop.relay();

  EXPECT_THAT(message_of<UsageError>([&] {
                shop.operations.retry({.sequences = {GlobalSequence{1}, GlobalSequence{3}}});
              }),
              HasSubstr("event 3 comes after event 2 of its stream, which is parked too"));
  shop.too_large.clear();
  shop.operations.retry({.sequences = {GlobalSequence{2}, GlobalSequence{1}}});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1r1 2r2");
  EXPECT_THAT(shop.list(), ElementsAre("3 order-1 parked behind"));
}

TEST(OutboxRetry, OnlySaysWhatItWouldDo) {
  Shop shop;
  shop.too_large = {1, 2};
  shop.append_all({"order-1", "order-2", "order-2"});
  shop.relay();

  const Affected affected = shop.operations.retry({.all = true}, Mode::dry_run);

  EXPECT_EQ(affected.messages, 3);
  EXPECT_EQ(affected.streams, 2);
  EXPECT_EQ(shop.totals(), "3 parked");
  EXPECT_THAT(shop.actions(), IsEmpty());
}

TEST(OutboxRetry, RefusesWhatIsNotParked) {
  Shop shop;
  shop.append("order-1");
  EXPECT_THAT(
      message_of<UsageError>([&] { shop.operations.retry({.sequences = {GlobalSequence{1}}}); }),
      HasSubstr("event 1 isn't parked"));
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.retry({}); }),
              HasSubstr("say which messages"));
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.retry({.stream = "order-7"}); }),
              HasSubstr("there is no stream 'order-7'"));
}

TEST(OutboxRetry, GivesEachAttemptANumberOfItsOwn) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.too_large.clear();
  shop.operations.retry({.all = true});
  shop.relay();
  shop.operations.republish({.stream = "order-1"});
  shop.relay();
  shop.operations.republish({.stream = "order-1"});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1r1 1r2 1r3");
  EXPECT_THAT(shop.broker.database().rows("SELECT count(DISTINCT id) FROM stored"),
              ElementsAre("3"));
}

// --- discard

TEST(OutboxDiscard, GivesAMessageUpForGood) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1"});
  shop.relay();

  shop.operations.discard({.sequences = {GlobalSequence{1}}});
  shop.operations.retry({.stream = "order-1"});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2r1");
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
  EXPECT_THAT(shop.list({.state = MessageState::discarded}),
              ElementsAre("1 order-1 discarded discarded"));
  EXPECT_THAT(shop.actions(),
              ElementsAre("ann discard 1 message, 1", "ann retry order-1: 1 message, 2"));
}

TEST(OutboxDiscard, RefusesWhatIsAboutToBePublishedOrIsIt) {
  Shop shop;
  shop.append("order-1");
  const ParkedSelection first{.sequences = {GlobalSequence{1}}};
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.discard(first); }),
              HasSubstr("event 1 waits to be published: only what is parked"));
  shop.relay();
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.discard(first); }),
              HasSubstr("event 1 is published already"));
  EXPECT_EQ(shop.totals(), "1 published");
}

// --- republish

TEST(OutboxRepublish, SendsARangeAgainAsNewMessages) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();

  const Affected affected =
      shop.operations.republish({.first = GlobalSequence{2}, .last = GlobalSequence{9}});
  EXPECT_EQ(affected.messages, 2);
  shop.append("order-4");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3 2r1 3r2 4");
  EXPECT_EQ(shop.totals(), "4 published");
}

TEST(OutboxRepublish, SelectsByTimeAndStream) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.clock.advance(std::chrono::hours{1});
  const Timestamp later = shop.clock.now();
  shop.append_all({"order-1", "order-2"});
  shop.relay();

  EXPECT_EQ(shop.operations.republish({.since = later}, Mode::dry_run).messages, 2);
  EXPECT_EQ(shop.operations.republish({.stream = "order-1"}, Mode::dry_run).messages, 2);
  EXPECT_EQ(
      shop.operations.republish({.since = later, .stream = "order-2"}, Mode::dry_run).messages, 1);
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.republish({}); }),
              HasSubstr("say which events are to be republished"));
  EXPECT_EQ(shop.totals(), "4 published");
}

TEST(OutboxRepublish, PassesOverWhatIsNotPublished) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.append("order-3");

  EXPECT_EQ(shop.operations.republish({.last = GlobalSequence{9}}).messages, 1);
  EXPECT_EQ(shop.totals(), "1 pending, 1 to be sent again, 1 parked, 1 published");
}

// --- reconcile

TEST(OutboxReconcile, EnqueuesWhatHasNoPointer) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.raw().run("DELETE FROM outbox_messages WHERE sequence = 2");
  shop.relay();
  shop.append("order-4");
  shop.raw().run("DELETE FROM outbox_messages WHERE sequence = 4");

  const Reconciled found = shop.operations.reconcile(GlobalSequence{1}, Mode::dry_run);
  EXPECT_EQ(found.checked, 4);
  EXPECT_EQ(found.missing, 1) << "an event inside a batch looks published";
  EXPECT_THAT(found.examples, ElementsAre(GlobalSequence{4}));
  EXPECT_EQ(shop.operations.reconcile().missing, 1);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 3 4r1");
  EXPECT_EQ(shop.operations.reconcile().missing, 0);
}

TEST(OutboxReconcile, FindsWhatLiesBetweenTwoBatches) {
  Shop shop;
  shop.append("order-1");
  shop.relay();
  shop.append("order-2");
  shop.raw().run("DELETE FROM outbox_messages WHERE sequence = 2");
  shop.append("order-3");
  shop.relay();

  EXPECT_EQ(shop.operations.reconcile().missing, 1);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 3 2r1");
}

TEST(OutboxReconcile, LeavesWhatWasSetAsideAndRetriedAlone) {
  Shop shop;
  shop.append("order-1");
  shop.relay();
  shop.too_large = {2, 3};
  shop.append_all({"order-2", "order-3"});
  shop.relay();
  shop.append("order-4");
  shop.relay();
  shop.operations.discard({.sequences = {GlobalSequence{2}}});
  shop.too_large.clear();
  shop.operations.retry({.all = true});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 4 3r1");
  EXPECT_EQ(shop.operations.reconcile().missing, 0);
}

// --- purge

TEST(OutboxPurge, RemovesWhatIsOldFromTheLogs) {
  Shop shop{{}, {.retention = std::chrono::hours{1000}}};
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.operations.discard({.all = true});
  shop.clock.advance(std::chrono::hours{200});
  shop.append("order-3");
  shop.relay();

  const Purged would = shop.operations.purge(std::chrono::hours{168}, Mode::dry_run);
  const Purged purged = shop.operations.purge(std::chrono::hours{168});

  EXPECT_EQ(would.batches, 1);
  EXPECT_EQ(would.actions, 1);
  EXPECT_EQ(purged.batches, 1);
  EXPECT_EQ(purged.actions, 1);
  EXPECT_EQ(purged.discarded, 1);
  EXPECT_THAT(shop.operations.batches(), SizeIs(1));
  EXPECT_EQ(shop.totals(), "1 discarded, 2 published");
  EXPECT_FALSE(shop.operations.show(GlobalSequence{1})->since);
  EXPECT_EQ(shop.operations.reconcile().missing, 0);
}

TEST(OutboxPurge, IsDoneByTheRelayNowAndThen) {
  Shop shop{{}, {.retention = std::chrono::hours{48}}};
  shop.append("order-1");
  shop.relay();
  shop.clock.advance(std::chrono::hours{47});
  EXPECT_EQ(shop.relay().purged, 0);
  EXPECT_THAT(shop.operations.batches(), SizeIs(1));

  shop.clock.advance(std::chrono::hours{2});
  EXPECT_EQ(shop.relay().purged, 1);

  EXPECT_THAT(shop.operations.batches(), IsEmpty());
}

TEST(OutboxPurge, NeverTouchesWhatIsParked) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.clock.advance(std::chrono::hours{24 * 400});

  shop.operations.purge(std::chrono::hours{1});

  EXPECT_EQ(shop.totals(), "1 parked");
}

// --- partitions

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

  const RelayTick tick = other.tick();
  EXPECT_EQ(tick.active_workers, 2);
  EXPECT_EQ(tick.desired_count, 1);
}

TEST(OutboxResize, RefusesWhatCannotBe) {
  Shop shop;
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.resize(0); }),
              HasSubstr("partition_count is 1 to 1024, not 0"));
  EXPECT_EQ(shop.operations.resize(1).generation, 1);
  EXPECT_THAT(shop.actions(), IsEmpty());
}

TEST(OutboxSync, RetiresWhatIsDrainedAndBringsItBack) {
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

TEST(OutboxAdopt, LetsAPartitionGoOnWithARebuiltBroker) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.broker.database().run("DELETE FROM stored");
  shop.lose_relay();
  shop.append("order-3");
  shop.relay();
  const auto stopped = shop.operations.status().partitions.front();
  EXPECT_EQ(stopped.stopped, "broker_lost");

  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.resume(all); }),
              HasSubstr("partition all is stopped by broker_lost"));
  shop.operations.adopt(all, 0);
  shop.operations.republish({.last = GlobalSequence{2}});
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1r1 2r2 3");
  EXPECT_THAT(shop.actions(), ElementsAre("ann adopt all at 0, stopped by broker_lost",
                                          "ann republish 2 messages, 1 to 2"));
}

TEST(OutboxAdopt, RefusesAPartitionThatIsNotStopped) {
  Shop shop;
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.adopt(all, 3); }),
              HasSubstr("partition all isn't stopped"));
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.adopt(PartitionId{5}); }),
              HasSubstr("there is no partition p04"));
}

}  // namespace
}  // namespace stela
