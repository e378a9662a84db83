#include "outbox/shop.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::operations_test {
namespace {

using test::message_of;
using test::Shop;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PartitionId all{0};

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

TEST(OutboxRetry, TakesNoMessageWithoutThoseBeforeIt) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1", "order-1"});
  shop.relay();

  EXPECT_THAT(message_of<UsageError>([&] {
                shop.operations.retry({.sequences = {GlobalSequence{1}, GlobalSequence{3}}});
              }),
              HasSubstr("event 3 comes after event 2 of its stream, which is parked too"));
  EXPECT_EQ(shop.totals(), "3 parked");
}

TEST(OutboxRetry, TakesWhatIsParkedBehindTheMessage) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1", "order-2", "order-1"});
  shop.relay();
  shop.too_large.clear();

  for (const Mode mode : {Mode::dry_run, Mode::carry_out}) {
    const Affected affected = shop.operations.retry({.sequences = {GlobalSequence{1}}}, mode);
    EXPECT_EQ(affected.messages, 3);
    EXPECT_EQ(affected.streams, 1);
  }
  shop.append("order-1");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "3 1r1 2r2 4r3 5");
  EXPECT_EQ(shop.totals(), "5 published");
  EXPECT_THAT(shop.actions(), ElementsAre("ann retry order-1: 3 messages, 1 to 4"));
}

TEST(OutboxRetry, LeavesAMessageParkedThatWasRefusedItself) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1", "order-1", "order-1"});
  shop.relay();
  shop.raw().run("UPDATE outbox_parked SET reason = 'refused' WHERE sequence = 3");

  EXPECT_EQ(shop.operations.retry({.sequences = {GlobalSequence{1}}}).messages, 2);

  EXPECT_THAT(shop.list({.state = MessageState::parked}),
              ElementsAre("3 order-1 parked refused", "4 order-1 parked behind"));
}

TEST(OutboxRetry, TakesManyMessagesParkedBehindInBoundedSteps) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();

  for (const Mode mode : {Mode::dry_run, Mode::carry_out}) {
    EXPECT_EQ(shop.operations.retry({.sequences = {GlobalSequence{1}}}, mode).messages, 1'203);
  }
  EXPECT_EQ(shop.totals(), "1203 to be sent again");
  EXPECT_THAT(shop.actions(), ElementsAre("ann retry 1203 messages in 1 stream"));
  EXPECT_THAT(shop.steps(), ElementsAre("retry order-1: 500 messages, 1 to 500",
                                        "retry order-1: 500 messages, 501 to 1000",
                                        "retry order-1: 203 messages, 1001 to 1203"));
}

/// Of 1,203 messages of one stream, so that a step is a transaction.
TEST(OutboxRetry, StopsAfterAStepAndAnotherOneDoesTheRest) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  std::stop_source stop;
  std::vector<std::int64_t> seen;
  shop.operations.on_progress([&](const Progress& progress) {
    seen.insert(seen.end(), {progress.done, progress.total});
    stop.request_stop();
  });

  const AppliedPlan part =
      shop.operations.apply(shop.operations.plan_retry({.all = true}), stop.get_token());

  EXPECT_FALSE(part.finished);
  EXPECT_THAT(seen, ElementsAre(500, 1'203));
  EXPECT_EQ(part.messages_done(), 500);
  EXPECT_EQ(part.messages_changed(), 0);
  EXPECT_EQ(shop.totals(), "500 to be sent again, 703 parked");
  const OperatorAction action = shop.operations.actions().front();
  EXPECT_EQ(action.state, "unfinished");
  EXPECT_EQ(action.done, 500);
  EXPECT_EQ(action.planned, 1'203);

  EXPECT_TRUE(shop.operations.apply(shop.operations.plan_retry({.all = true})).finished);
  EXPECT_EQ(shop.totals(), "1203 to be sent again");
}

TEST(OutboxRetry, OfAnyNumberOfStreamsIsOneActionWithAThousandSteps) {
  Shop shop;
  shop.append_all({"order-1"});
  shop.raw().run(
      "WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < 1100) "
      "INSERT INTO streams (stream, name) SELECT i, 'order-' || i FROM n; "
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, stream, 0, 0, 1, 'refused', 'no' FROM streams WHERE stream > 1");

  shop.operations.retry({.all = true});

  EXPECT_THAT(shop.actions(),
              ElementsAre("ann retry 1099 messages in 1099 streams; the first 1000 steps are "
                          "listed"));
  EXPECT_EQ(shop.steps(2'000).size(), 1'000U);
}

/// To come later, they would all have to get new numbers.
TEST(OutboxRetry, LeavesManyLaterMessagesAsTheyAre) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  shop.operations.retry({.sequences = {GlobalSequence{1}}});
  shop.raw().run(
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, sequence, partition, 0, 1, 'refused', 'no' FROM outbox_redeliveries "
      "WHERE sequence = 1; DELETE FROM outbox_redeliveries WHERE sequence = 1");
  ASSERT_EQ(shop.totals(), "1202 to be sent again, 1 parked");
  shop.too_large.clear();

  EXPECT_EQ(shop.operations.retry({.sequences = {GlobalSequence{1}}}).messages, 1);
  EXPECT_THAT(shop.raw().rows("SELECT min(redelivery), max(redelivery) FROM outbox_redeliveries"),
              ElementsAre("2|1203"));
  for (int i = 0; i < 30; ++i) shop.relay();

  EXPECT_EQ(shop.totals(), "1203 published");
  EXPECT_EQ(shop.broker.database().integer(
                "SELECT count(*) FROM stored WHERE event = sequence AND redelivery > 0"),
            1'203)
      << "in order, and once";
  EXPECT_THAT(shop.actions(), Contains("ann retry order-1: through 1, by the relay"));
}

TEST(OutboxRetry, CountsWhatTheRelaySendsForIt) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  shop.operations.retry({.all = true});
  shop.raw().run(
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, sequence, partition, 0, 1, CASE sequence WHEN 1 THEN 'refused' ELSE 'behind' "
      "END, 'no' FROM outbox_redeliveries WHERE sequence <= 4; "
      "DELETE FROM outbox_redeliveries WHERE sequence <= 4");
  const RetryPlan plan = shop.operations.plan_retry({.all = true});
  shop.operations.discard({.sequences = {GlobalSequence{3}}});

  const AppliedPlan applied = shop.operations.apply(plan);

  EXPECT_EQ(plan.messages(), 4);
  EXPECT_EQ(applied.messages_done(), 3);
  EXPECT_EQ(applied.messages_changed(), 1);
  EXPECT_EQ(applied.joined, 0);
  EXPECT_THAT(shop.actions(), Contains("ann retry order-1: through 4, by the relay"));
}

TEST(OutboxRetry, ChoosesStreamsByTheirFirstParkedMessage) {
  Shop shop;
  shop.too_large = {1, 3, 4};
  shop.append_all({"order-1", "order-1"});
  test::append(shop.store, "order-2", {NewEvent{"paid", 1, true, "{}"}});
  shop.append("order-3");
  shop.append("order-2");
  shop.relay();
  ASSERT_EQ(shop.totals(), "5 parked");

  const auto retried = [&](const ParkedSelection& selection) {
    return shop.operations.retry(selection, Mode::dry_run).messages;
  };
  EXPECT_EQ(retried({.all = true, .type = "paid"}), 2);
  EXPECT_EQ(retried({.all = true, .type = "placed"}), 3);
  EXPECT_EQ(retried({.all = true, .type = "sent"}), 0);
  const std::string error = shop.operations.show(GlobalSequence{1})->last_error;
  ASSERT_NE(error, "");
  EXPECT_EQ(retried({.all = true, .error = error.substr(1)}), 5);
  EXPECT_EQ(retried({.all = true, .error = error + "x"}), 0);

  shop.too_large.clear();
  shop.operations.retry({.all = true, .type = "paid"});
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "3r1 5r2");
  EXPECT_EQ(shop.totals(), "3 parked, 2 published");
}

TEST(OutboxRetry, TakesATypeOnlyToChooseAmongAll) {
  Shop shop;
  shop.append("order-1");
  EXPECT_THAT(message_of<UsageError>(
                  [&] { shop.operations.retry({.stream = "order-1", .type = "placed"}); }),
              HasSubstr("choose among all"));
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.discard({.all = true, .error = "x"}); }),
              HasSubstr("not messages to discard"));
}

TEST(OutboxList, FiltersByTypeAndError) {
  Shop shop;
  shop.too_large = {2};
  shop.append("order-1");
  test::append(shop.store, "order-2", {NewEvent{"paid", 1, true, "{}"}});
  shop.relay();
  shop.append("order-3");
  test::append(shop.store, "order-4", {NewEvent{"paid", 1, true, "{}"}});

  EXPECT_THAT(shop.list({.type = "paid"}),
              ElementsAre("2 order-2 parked refused", "4 order-4 pending"));
  EXPECT_THAT(shop.list({.type = "paid", .limit = 1}), SizeIs(1));
  EXPECT_THAT(shop.list({.state = MessageState::pending, .type = "placed"}),
              ElementsAre("3 order-3 pending"));
  const std::string error = shop.operations.show(GlobalSequence{2})->last_error;
  EXPECT_THAT(shop.list({.error = error}), ElementsAre("2 order-2 parked refused"));
  EXPECT_THAT(shop.list({.stream = "order-2", .error = error + "x"}), IsEmpty());
  EXPECT_THAT(shop.list({.state = MessageState::published, .type = "paid"}), IsEmpty());
  EXPECT_THAT(shop.list({.state = MessageState::published, .type = "placed"}), SizeIs(1));
}

TEST(OutboxRetry, ChangesNothingInADryRun) {
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

TEST(OutboxRetry, RefusesMessagesThatAreNotParked) {
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
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2r1");
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
  EXPECT_THAT(shop.list({.state = MessageState::discarded}),
              ElementsAre("1 order-1 discarded discarded"));
  EXPECT_THAT(shop.actions(),
              ElementsAre("ann discard 1 message in 1 stream; retried after them: 1"));
  EXPECT_THAT(shop.steps(), ElementsAre("discard 1 message, 1", "retry order-1: 1 message, 2"));
}

TEST(OutboxDiscard, SendsMessagesParkedBehindInOrder) {
  Shop shop;
  shop.too_large = {1, 3};
  shop.append_all({"order-1", "order-1", "order-1", "order-1", "order-1"});
  shop.relay();
  EXPECT_EQ(shop.totals(), "5 parked");

  const ParkedSelection first{.sequences = {GlobalSequence{1}}};
  for (const Mode mode : {Mode::dry_run, Mode::carry_out}) {
    const Affected affected = shop.operations.discard(first, mode);
    EXPECT_EQ(affected.messages, 1);
    EXPECT_EQ(affected.followers, 4) << "all were read behind the first";
  }
  shop.relay();
  EXPECT_THAT(shop.list(), ElementsAre("3 order-1 parked refused", "4 order-1 parked behind",
                                       "5 order-1 parked behind"));
  shop.append("order-1");
  shop.relay();
  EXPECT_EQ(shop.operations.discard({.sequences = {GlobalSequence{3}}}).followers, 3);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2r1 4r5 5r6 6r7");
  EXPECT_EQ(shop.totals(), "2 discarded, 4 published");
}

TEST(OutboxDiscard, SendsNothingThatIsGivenUpToo) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  EXPECT_EQ(shop.totals(), "1203 parked");
  std::vector<GlobalSequence> most;
  for (std::int64_t i = 1'102; i > 0; --i) most.emplace_back(i);

  const Affected affected = shop.operations.discard({.sequences = most});

  EXPECT_EQ(affected.messages, 1'102);
  EXPECT_EQ(affected.followers, 101);
  EXPECT_EQ(shop.totals(), "101 to be sent again, 1102 discarded");
  EXPECT_EQ(shop.operations.discard({.all = true}).messages, 0);
}

TEST(OutboxDiscard, SendsManyMessagesParkedBehindInBoundedSteps) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();

  EXPECT_EQ(shop.operations.discard({.sequences = {GlobalSequence{1}}}).followers, 1'202);

  EXPECT_EQ(shop.totals(), "1202 to be sent again, 1 discarded");
  EXPECT_THAT(shop.actions(),
              ElementsAre("ann discard 1 message in 1 stream; retried after them: 1202"));
  EXPECT_THAT(shop.steps(),
              ElementsAre("discard 1 message, 1", "retry order-1: 500 messages, 2 to 501",
                          "retry order-1: 500 messages, 502 to 1001",
                          "retry order-1: 202 messages, 1002 to 1203"));
}

/// As whoever looks after it was killed there would see it.
TEST(OutboxDiscard, IsUnfinishedInTheLogWhileItSendsWhatWasBehind) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  shop.raw().run(
      "CREATE TABLE seen (state TEXT); CREATE TRIGGER looks AFTER INSERT ON outbox_redeliveries "
      "WHEN NEW.sequence = 1100 BEGIN INSERT INTO seen SELECT state FROM outbox_actions WHERE "
      "item_of = 0; END");

  shop.operations.discard({.sequences = {GlobalSequence{1}}});

  EXPECT_THAT(shop.raw().rows("SELECT state FROM seen"), ElementsAre("unfinished"));
  EXPECT_EQ(shop.operations.actions().front().state, "done");
}

TEST(OutboxDiscard, StopsAfterAStepAndAnotherOneDoesTheRest) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  std::stop_source stop;
  stop.request_stop();

  const Affected part =
      shop.operations.apply(shop.operations.plan_discard({.all = true}), stop.get_token());

  EXPECT_FALSE(part.finished);
  EXPECT_EQ(part.messages, 500);
  EXPECT_EQ(part.changed, 0);
  EXPECT_EQ(shop.operations.actions().front().state, "unfinished");
  EXPECT_TRUE(shop.operations.apply(shop.operations.plan_discard({.all = true})).finished);
  EXPECT_EQ(shop.totals(), "1203 discarded");
}

TEST(OutboxDiscard, RefusesPendingAndPublishedMessages) {
  Shop shop;
  shop.append("order-1");
  const ParkedSelection first{.sequences = {GlobalSequence{1}}};
  EXPECT_THAT(message_of<UsageError>([&] { shop.operations.discard(first); }),
              HasSubstr("event 1 is pending: only parked messages"));
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
      shop.operations.republish({.from = GlobalSequence{2}, .to = GlobalSequence{9}});
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
              HasSubstr("name the events to republish"));
  EXPECT_EQ(shop.totals(), "4 published");
}

TEST(OutboxRepublish, SkipsUnpublishedMessages) {
  Shop shop;
  shop.too_large = {1};
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.append("order-3");

  EXPECT_EQ(shop.operations.republish({.to = GlobalSequence{9}}).messages, 1);
  EXPECT_EQ(shop.totals(), "1 pending, 1 to be sent again, 1 parked, 1 published");
}

TEST(OutboxRepublish, SaysWhereItStopped) {
  constexpr int events = 1'200;
  Shop shop;
  for (int i = 0; i < events; ++i) shop.append("order-" + std::to_string(i % 3));
  while (shop.operations.status().pending > 0) shop.relay();
  std::stop_source stop;
  shop.operations.on_progress([&](const auto&) { stop.request_stop(); });

  const Affected part =
      shop.operations.republish({.from = GlobalSequence{2}}, Mode::carry_out, stop.get_token());
  EXPECT_EQ(part.messages, 500);
  EXPECT_EQ(part.next, GlobalSequence{502});
  const OperatorAction action = shop.operations.actions().front();
  EXPECT_EQ(action.state + ": " + action.selection + ": " + action.detail,
            "unfinished: from 2: 500 messages in 3 streams");
  const Affected rest = shop.operations.republish({.from = *part.next});
  EXPECT_EQ(rest.messages, events - 501);
  EXPECT_FALSE(rest.next);
}

// --- reconcile

TEST(OutboxReconcile, EnqueuesEventsWithoutAPointer) {
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

TEST(OutboxReconcile, FindsEventsBetweenTwoBatches) {
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

TEST(OutboxReconcile, LeavesRetriedMessagesAlone) {
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

TEST(OutboxPurge, RemovesOldLogEntries) {
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
  const std::vector<OperatorAction> left = shop.operations.actions();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left.front().what, "purge");
  EXPECT_EQ(left.front().number, 2) << "no number is given twice";
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

TEST(OutboxPurge, KeepsDiscardedMessagesDiscarded) {
  Shop shop{{}, {.retention = std::chrono::hours{48}}};
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.relay();
  shop.operations.discard({.all = true});
  shop.too_large.clear();
  shop.append("order-2");
  shop.relay();
  shop.clock.advance(std::chrono::hours{24 * 400});
  shop.relay();
  shop.operations.purge(std::chrono::hours{1});

  EXPECT_THAT(shop.list({.state = MessageState::discarded}),
              ElementsAre("2 order-2 discarded discarded"));
  EXPECT_EQ(shop.operations.reconcile().missing, 0);
  EXPECT_EQ(shop.operations.republish({.to = GlobalSequence{4}}).messages, 3);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "1 3 4 1r1 3r2 4r3");
}

TEST(OutboxPurge, KeepsParkedMessages) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.clock.advance(std::chrono::hours{24 * 400});

  shop.operations.purge(std::chrono::hours{1});

  EXPECT_EQ(shop.totals(), "1 parked");
}

}  // namespace
}  // namespace stela::operations_test
