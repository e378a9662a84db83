// What a lane without a fence sends and notes, step by step.
#include "outbox/relay/lane_bench.hpp"
#include "relay/fenced_lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::unfenced_lane_test {
namespace {

using namespace std::chrono_literals;
using test::id_of;
using test::Kind;
using ::testing::Each;

struct Bench : test::LaneBench<relay::FencedLane> {
  Bench() : LaneBench{Fence::none} {}
};

TEST(UnfencedLane, SendsStreamsSideBySideAndEachInOrder) {
  Bench bench;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 20);
  bench.store.let_wait(3, 10);
  bench.lane.acquire();
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 2 in flight, send 1, send 2");

  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "mark 1, note 2 in flight, send 3");
}

TEST(UnfencedLane, MarksWhatWasStoredBesideWhatWasnt) {
  Bench bench;
  bench.begin_with({1, 2, 3, 4});

  bench.store_at_broker({1, 2, 4});
  EXPECT_EQ(bench.journal.read(), "");
  bench.answer(3, Kind::rejected);

  EXPECT_EQ(bench.journal.read(), "mark 1-2, mark 4, charge 3");
  EXPECT_THAT(bench.store.epochs, Each(7));
}

TEST(UnfencedLane, TakesADuplicateForStored) {
  Bench bench;
  bench.begin_with({1});

  bench.answer(1, Kind::stored_before);

  EXPECT_EQ(bench.journal.read(), "mark 1");
}

TEST(UnfencedLane, SendsAgainUnderTheSameIdAfterATimeOut) {
  Bench bench;
  bench.begin_with({1});
  bench.pass(bench.options.publish_timeout);
  EXPECT_TRUE(bench.doubts_the_session());

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1");
  EXPECT_EQ(bench.publisher.sent[1].message_id, id_of(1).to_string());
}

TEST(UnfencedLane, SendsOnlyWhatWasntAnsweredAgain) {
  Bench bench;
  bench.begin_with({1, 2, 3});
  bench.store_at_broker({1, 3});

  bench.pass(bench.options.publish_timeout);

  EXPECT_EQ(bench.journal.read(), "mark 1, mark 3, note 1 in flight, send 2");
}

TEST(UnfencedLane, SendsAgainInANewSession) {
  Bench bench;
  bench.begin_with({1, 2});
  bench.store_at_broker({2});

  bench.lose_session();
  bench.open_session();
  bench.run();

  EXPECT_EQ(bench.journal.read(), "mark 2, note 1 in flight, send 1");
}

TEST(UnfencedLane, SendsEverMoreSlowlyWhenNothingIsAnswered) {
  Bench bench;
  bench.begin_with({1});

  bench.expect_ever_more_slowly("note 1 in flight, send 1");
}

TEST(UnfencedLane, HoldsItsPartitionForARejectedMessage) {
  Bench bench;
  bench.begin_with({1, 2});

  bench.answer(1, Kind::rejected);
  bench.store_at_broker({2});
  EXPECT_EQ(bench.journal.read(), "mark 2, charge 1");

  bench.pass(1s);
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1");
}

TEST(UnfencedLane, ParksARefusedMessageWithTheRestOfItsStream) {
  Bench bench;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 10);
  bench.store.let_wait(3, 20);
  bench.begin();

  bench.answer(1, Kind::refused);

  EXPECT_EQ(bench.journal.read(), "park 1 (refused), park 2 (behind), note 1 in flight, send 3");
}

/// A batch is read again for each message of it.
TEST(UnfencedLane, ReadsFewMessagesAtATimeOfAStreamThatIsAlone) {
  Bench bench;
  for (std::int64_t sequence = 1; sequence <= 100; ++sequence) bench.store.let_wait(sequence, 10);
  bench.begin();
  for (std::int64_t sequence = 1; sequence <= 50; ++sequence) bench.store_at_broker({sequence});

  EXPECT_LE(bench.store.messages_read, 100 + 2 * 50);
}

TEST(UnfencedLane, HoldsItsPartitionWhileTheBrokerIsFull) {
  Bench bench;
  bench.begin_with({1});

  bench.answer(1, Kind::full);
  bench.let_wait({2, 3});
  bench.pass(999ms);
  EXPECT_EQ(bench.journal.read(), "");

  // One message tells whether it still is.
  EXPECT_EQ(bench.bytes_taken(), 0);
  bench.pass(1ms);
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1");
  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "mark 1, note 2 in flight, send 2, send 3");
}

}  // namespace
}  // namespace stela::unfenced_lane_test
