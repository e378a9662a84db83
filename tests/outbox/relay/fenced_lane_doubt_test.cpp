// How a fenced lane finds out where its partition stands, and what it then does.
#include "outbox/relay/lane_bench.hpp"
#include "relay/fenced_lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::fenced_lane_doubt_test {
namespace {

using namespace std::chrono_literals;
using test::Kind;
using test::ours;

using Bench = test::LaneBench<relay::FencedLane>;

TEST(FencedLaneInDoubt, MarksMessagesFoundAfterATimeOut) {
  Bench bench;
  bench.begin_with({1, 2});
  bench.pass(bench.options.publish_timeout);
  EXPECT_TRUE(bench.doubts_the_session());
  bench.find({ours(1, 1), ours(2, 2)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, mark 2");
}

TEST(FencedLaneInDoubt, ResendsMessagesNotFoundAfterATimeOut) {
  Bench bench;
  bench.begin_with({1, 2});
  bench.pass(bench.options.publish_timeout);

  bench.find({ours(1, 1)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, note 1 in flight, send 2 after 1");
}

/// Over a slow line an answer holds a part: what is sent before the rest is known is refused, and
/// takes the line from the next read-back.
TEST(FencedLaneInDoubt, SendsNothingBeforeItHasReadBackAllStoredMessages) {
  Bench bench;
  bench.begin_with({1, 2, 3, 4});
  bench.pass(bench.options.publish_timeout);

  bench.find_part({ours(1, 1), ours(2, 2)});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, mark 2, read back from 2");

  bench.find({ours(2, 2), ours(3, 3)});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "mark 3, note 1 in flight, send 4 after 3");
}

TEST(FencedLaneInDoubt, MarksMessagesFoundInANewSession) {
  Bench bench;
  bench.begin_with({1, 2});

  bench.lose_session();
  bench.open_session();
  bench.find({ours(1, 1)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, note 1 in flight, send 2 after 1");
}

TEST(FencedLaneInDoubt, IgnoresTheLateAnswerToAMessageThatWasSentAgain) {
  Bench bench;
  bench.begin_with({1});
  const auto first = bench.publisher.sent.at(1);
  bench.pass(bench.options.publish_timeout);
  bench.find({});
  bench.run();
  bench.journal.read();

  bench.lane.on_answer({.request = first.request, .kind = Kind::stored, .broker_sequence = 1});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "");

  // That one came first, so the second didn't get in.
  bench.answer(1, Kind::stored_before, "wrong last sequence");
  bench.find({ours(1, 1)});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1");
}

TEST(FencedLaneInDoubt, AsksEverMoreSlowlyWhenNothingIsAnswered) {
  Bench bench;
  bench.begin_with({1});

  bench.expect_ever_more_slowly("read back from 1");
  bench.find({});
  bench.run();
  bench.store_at_broker({1});
  EXPECT_EQ(bench.store.last_trouble.attempts, 0);
}

/// What went wrong with the message, then with the read-back: waiting for the second is enough.
void expect_one_wait(Kind message, Kind read_back) {
  Bench bench;
  bench.begin_with({1});
  bench.answer(1, message, "offline");
  bench.lane.on_answer({.request = bench.publisher.question, .kind = read_back});
  bench.run();
  bench.journal.read();

  bench.pass(bench.options.retry_backoff);
  bench.find({});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1, note 1 in flight, send 1 after 0");
}

TEST(FencedLaneInDoubt, WaitsOnceForAStreamThatIsMissing) {
  expect_one_wait(Kind::misconfigured, Kind::misconfigured);
}

TEST(FencedLaneInDoubt, WaitsOnceForAStreamThatIsMissingAfterItWasOffline) {
  expect_one_wait(Kind::full, Kind::misconfigured);
}

TEST(FencedLaneInDoubt, WaitsOnceForAStreamThatIsOffline) {
  Bench bench;
  bench.begin_with({1});
  bench.answer(1, Kind::full, "offline");
  for (int i = 0; i < 2; ++i) {
    bench.lane.on_answer({.request = bench.publisher.question, .kind = Kind::full});
    bench.run();
  }
  bench.journal.read();

  bench.pass(bench.options.retry_backoff);
  bench.find({});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1, note 1 in flight, send 1 after 0");
}

TEST(FencedLaneInDoubt, LooksAgainEachMinute) {
  Bench bench;
  bench.begin_with({1});
  bench.store_at_broker({1});
  bench.journal.read();

  bench.pass(1min - 1ms);
  EXPECT_EQ(bench.journal.read(), "");
  bench.pass(1ms);
  EXPECT_EQ(bench.journal.read(), "read back from 1");

  bench.find({ours(1, 1)});
  bench.let_wait({2});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 2 after 1");
}

TEST(FencedLaneInDoubt, LooksAgainBetweenMessages) {
  Bench bench;
  bench.begin_with({1});
  bench.clock.advance(1min);
  bench.lane.renew();
  bench.let_wait({2});

  bench.store_at_broker({1});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "mark 1, read back from 1");
}

TEST(FencedLaneInDoubt, ContinuesAfterMessagesOfAnotherOwner) {
  Bench bench;
  bench.begin_with({1, 2});

  bench.answer(1, Kind::stored_before, "wrong last sequence");
  bench.answer(2, Kind::stored_before, "wrong last sequence");
  bench.find({ours(1, 1)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, note 1 in flight, send 2 after 1");
}

TEST(FencedLaneInDoubt, ReadsBackWhenAMessageWasStoredAtAnotherPlace) {
  Bench bench;
  bench.begin_with({1});

  bench.lane.on_answer(
      {.request = bench.publisher.sent[1].request, .kind = Kind::stored, .broker_sequence = 4});

  EXPECT_EQ(bench.journal.read(), "read back from 1");
}

TEST(FencedLaneInDoubt, StopsWhenTheBrokerLostMessages) {
  Bench bench;
  bench.store.standing.broker_sequence = 5;
  bench.lane.acquire();

  bench.find_up_to(4, {});
  EXPECT_EQ(bench.journal.read(), "read back from 5") << "a replica may be behind for a moment";
  bench.pass(bench.options.publish_timeout);
  bench.find_up_to(4, {});

  EXPECT_EQ(bench.journal.read(), "read back from 4, stop: broker_lost, release");
}

TEST(FencedLaneInDoubt, SaysWhatIsMissingAndHowToAnswer) {
  Bench bench;
  bench.store.standing.broker_sequence = 5;
  bench.store.standing.published_through = GlobalSequence{9};
  bench.let_wait({7});
  bench.lane.acquire();

  bench.find_up_to(4, {});
  bench.pass(bench.options.publish_timeout);
  bench.find({ours(7, 4)});

  EXPECT_EQ(bench.store.stopped_detail,
            "the partition was at broker sequence 5, and the broker has 1 to 4; missing is what "
            "was published of events 8 to 9. If it is gone for good, 'outbox partitions adopt all' "
            "continues without it, and after that 'outbox republish --from 8 --to 9 --partition "
            "all' sends it again");
}

TEST(FencedLaneInDoubt, GivesNoRangeIfTheLastMessageIsNoFirstDelivery) {
  Bench bench;
  bench.store.standing.broker_sequence = 5;
  bench.lane.acquire();

  bench.find_up_to(4, {});
  bench.pass(bench.options.publish_timeout);
  bench.find({{.broker_sequence = 4, .message_id = "whoever"}});

  EXPECT_THAT(bench.store.stopped_detail,
              ::testing::HasSubstr("after that 'outbox reconcile --against-broker' looks for it"));
}

/// It was asked from its former end on, and answers with the first part of what it has.
TEST(FencedLaneInDoubt, AsksFromItsPositionOnOnceTheBrokerHasItsMessagesAgain) {
  Bench bench;
  bench.store.standing.broker_sequence = 5;
  bench.store.standing.broker_id = test::id_of(5).to_string();
  bench.let_wait({6});
  bench.lane.acquire();
  bench.find_up_to(2, {});
  bench.pass(1s);

  bench.find_part({ours(2, 2), ours(3, 3)});
  bench.find({ours(5, 5)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 5, read back from 2, read back from 5, note 1 in flight, "
            "send 6 after 5");
}

struct StoppedForALoss : ::testing::Test {
  StoppedForALoss() {
    bench.store.standing.broker_sequence = 5;
    bench.store.standing.broker_id = test::id_of(5).to_string();
    bench.let_wait({6});
  }

  Bench bench;
};

TEST_F(StoppedForALoss, ContinuesOnceTheBrokerHasItsMessagesAgain) {
  bench.lane.look_for_lost();
  bench.find({ours(5, 5)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 5, continue, release");
}

TEST_F(StoppedForALoss, ReportsThatMessagesMayBeMissingBeforeTheEnd) {
  bench.lane.look_for_lost();
  bench.lane.on_answer({.request = bench.publisher.question,
                        .kind = Kind::read_back,
                        .first_sequence = 1,
                        .last_sequence = 5,
                        .holes = 2,
                        .found = {ours(5, 5)}});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 5, continue, release");
  EXPECT_THAT(bench.incidents,
              ::testing::Contains(::testing::HasSubstr("messages before it may be missing")));
}

TEST_F(StoppedForALoss, IsLookedAtOnceAMinute) {
  bench.lane.look_for_lost();
  bench.find_up_to(4, {});
  EXPECT_EQ(bench.journal.read(), "read back from 5, release");

  bench.lane.look_for_lost();
  EXPECT_EQ(bench.journal.read(), "");

  bench.pass(std::chrono::minutes{1});
  bench.lane.look_for_lost();
  bench.find_up_to(4, {});
  EXPECT_EQ(bench.journal.read(), "read back from 5, release");
}

TEST_F(StoppedForALoss, StaysStoppedIfAnotherMessageIsInItsPlace) {
  bench.lane.look_for_lost();
  bench.find({ours(7, 5)});

  EXPECT_EQ(bench.journal.read(), "read back from 5, release");
}

TEST_F(StoppedForALoss, StaysStoppedIfTheBrokerDoesNotAnswer) {
  bench.lane.look_for_lost();
  bench.pass(bench.options.publish_timeout);
  bench.lane.on_time();

  EXPECT_EQ(bench.journal.read(), "read back from 5, release");
}

/// An older stream that was put in its place goes on after the position.
TEST(FencedLaneInDoubt, StopsWhereAnEarlierEventComesAfterALaterOne) {
  Bench bench{Fence::subject};
  bench.store.standing.broker_sequence = 5;
  bench.store.standing.broker_id = test::id_of(9).to_string();
  bench.store.standing.published_through = GlobalSequence{9};
  bench.let_wait({10});
  bench.lane.acquire();

  bench.find({ours(6, 6), ours(7, 7)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 5, stop: store_went_back, release");
}

TEST(FencedLaneInDoubt, ContinuesOnceAReplicaHasCaughtUp) {
  Bench bench;
  bench.store.standing.broker_sequence = 5;
  bench.store.standing.broker_id = test::id_of(5).to_string();
  bench.let_wait({6});
  bench.lane.acquire();

  for (const int seconds : {1, 2}) {
    bench.find_up_to(4, {});
    bench.pass(std::chrono::seconds{seconds});
  }
  bench.find({ours(4, 4), ours(5, 5)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 5, read back from 4, read back from 4, note 1 in flight, "
            "send 6 after 5");
}

TEST(FencedLaneInDoubt, StopsWhenSomebodyElseWroteToItsStream) {
  Bench bench;
  bench.lane.acquire();

  bench.find({{.broker_sequence = 1, .message_id = "whoever"}});

  EXPECT_EQ(bench.journal.read(), "read back from 1, stop: foreign_writer, release");
}

TEST(FencedLaneInDoubt, StopsWhenTheBrokerKnowsEventsThatTheStoreDoesNot) {
  Bench bench;
  bench.lane.acquire();

  bench.find({ours(1, 1)});

  EXPECT_EQ(bench.journal.read(), "read back from 1, stop: store_went_back, release");
}

TEST(FencedLaneInDoubt, AdoptsAllMessagesOfAReadBackInParts) {
  Bench bench;
  bench.store.standing.adopted = true;
  bench.let_wait({2});
  bench.lane.acquire();

  bench.find({ours(7, 1), ours(8, 2)});
  bench.run();
  bench.find({ours(8, 2), ours(2, 3), ours(9, 4)});
  bench.run();
  bench.find({ours(9, 4)});
  bench.let_wait({3});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 1, read back from 2, mark 2, read back from 4, note 1 in flight, "
            "send 3 after 4");
}

// --- an adoption after a loss

struct FencedLaneAfterALoss : ::testing::Test {
  FencedLaneAfterALoss() {
    bench.begin_with({1, 2, 3});
    bench.store_at_broker({1, 2, 3});
    bench.let_wait({4, 5});
    bench.store.standing.adopted = true;
    bench.lane.acquire();
    bench.journal.read();
  }

  std::string adopt(std::initializer_list<std::vector<FoundMessage>> answers) {
    for (const std::vector<FoundMessage>& found : answers) {
      bench.find(found);
      bench.run();
    }
    return bench.journal.read();
  }

  Bench bench;
};

/// The store is an older copy, too: it doesn't know how much took the places of lost messages.
TEST_F(FencedLaneAfterALoss, ComparesAllIfTheMessageInItsPlaceIsNew) {
  EXPECT_EQ(adopt({{ours(4, 3)}, {ours(1, 1), ours(2, 2), ours(4, 3)}, {ours(4, 3)}}),
            "read back from 1, mark 1, mark 2, mark 4, read back from 3, note 1 in flight, "
            "send 5 after 3");
}

TEST_F(FencedLaneAfterALoss, ComparesAllIfTheLastMessageIsNew) {
  bench.find_up_to(2, {});
  EXPECT_EQ(bench.journal.read(), "read back from 2");
  EXPECT_EQ(adopt({{ours(4, 2)}, {ours(1, 1), ours(4, 2)}, {ours(4, 2)}}),
            "read back from 1, mark 1, mark 4, read back from 2, note 1 in flight, "
            "send 5 after 2");
}

TEST_F(FencedLaneAfterALoss, ComparesAllIfTheLastMessageWasSentAgain) {
  FoundMessage again = ours(1, 2);
  again.message_id += ".r1";
  again.redelivery = 1;
  bench.find_up_to(2, {});
  EXPECT_EQ(adopt({{again}, {ours(4, 1), again}}),
            "read back from 2, read back from 1, mark 4, mark 1r1, read back from 2");
}

TEST_F(FencedLaneAfterALoss, ContinuesAfterALastMessageThatItKnows) {
  bench.find_up_to(2, {});
  EXPECT_EQ(adopt({{ours(2, 2)}}),
            "read back from 2, mark 2, note 2 in flight, send 4 after 2, send 5 after 3");
}

TEST_F(FencedLaneAfterALoss, BeginsAnEmptyStream) {
  EXPECT_EQ(adopt({{}}), "note 2 in flight, send 4 after 0, send 5 after 1");
}

// --- where the subject is the fence

TEST(FencedLaneInDoubt, MarksAllMessagesStoredInItsSubject) {
  Bench bench{Fence::subject};
  bench.let_wait({4, 5, 6});
  bench.store.standing.broker_sequence = 3;
  bench.lane.acquire();

  bench.find({ours(1, 3), ours(4, 7), ours(5, 9)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 3, mark 4, mark 5, note 1 in flight, send 6 after 9");
}

TEST(FencedLaneInDoubt, StopsWhenItsSubjectHasLaterMessagesOnly) {
  Bench bench{Fence::subject};
  bench.let_wait({4, 5, 6});
  bench.store.standing.broker_sequence = 3;
  bench.lane.acquire();

  bench.find({ours(1, 3), ours(4, 7), ours(6, 9)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 3, stop: unreadable, release");
}

TEST(FencedLaneInDoubt, FollowsNothingIfTheServerKnowsOfNoLastMessage) {
  Bench bench{Fence::subject};
  bench.let_wait({4, 5, 6});
  bench.store.standing.broker_sequence = 3;
  bench.lane.acquire();

  bench.find_up_to(0, {ours(1, 3), ours(4, 7)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 3, mark 4, note 1 in flight, send 5 after 0");
  EXPECT_EQ(bench.store.standing.broker_sequence, 7U);
}

TEST(FencedLaneInDoubt, AdoptsMessagesThoughTheServerReportsNoLast) {
  Bench bench{Fence::subject};
  bench.store.standing.adopted = true;
  bench.store.standing.broker_sequence = 3;
  bench.let_wait({4, 5, 6});
  bench.lane.acquire();

  bench.find_up_to(0, {ours(1, 3), ours(4, 7)});
  bench.run();
  bench.find_up_to(0, {ours(4, 7)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 3, mark 4, read back from 7, note 1 in flight, send 5 after 0");
}

TEST(FencedLaneInDoubt, StopsWhenTheBrokerLosesMessagesDuringAnAdoption) {
  Bench bench;
  bench.store.standing.adopted = true;
  bench.let_wait({1});
  bench.lane.acquire();

  bench.find({ours(1, 1)});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1, mark 1, read back from 1");
  bench.find({});
  bench.pass(bench.options.publish_timeout);
  bench.find({});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 1, stop: broker_lost, release");
}

}  // namespace
}  // namespace stela::fenced_lane_doubt_test
