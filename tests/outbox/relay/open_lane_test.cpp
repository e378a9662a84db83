// What a lane without a fence sends and notes, step by step.
#include "relay/open_lane.hpp"
#include "outbox/relay/lane_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::open_lane_test {
namespace {

using namespace std::chrono_literals;
using test::id_of;
using test::Kind;
using ::testing::Each;

struct Bench : test::LaneBench<relay::OpenLane> {
  Bench() : LaneBench{Fence::none} {}
};

TEST(OpenLane, SendsStreamsSideBySideAndEachInOrder) {
  Bench bench;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 20);
  bench.store.let_wait(3, 10);
  bench.lane.acquire();
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 3 in flight, send 1, send 2");

  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "send 3");
}

TEST(OpenLane, MarksNeighboursAsARangeAndNothingBetween) {
  Bench bench;
  bench.options.batch_size = 3;
  bench.begin_with({1, 2, 3, 4});

  bench.store_at_broker({1, 2, 4});

  EXPECT_EQ(bench.journal.read(), "mark 1-2, mark 4");
  EXPECT_THAT(bench.store.epochs, Each(7));
}

TEST(OpenLane, TakesADuplicateForStored) {
  Bench bench;
  bench.begin_with({1});

  bench.answer(1, Kind::stored_before);

  EXPECT_EQ(bench.journal.read(), "mark 1");
}

TEST(OpenLane, SendsAgainUnderTheSameIdAfterATimeOut) {
  Bench bench;
  bench.begin_with({1});
  bench.pass(bench.options.publish_timeout);
  EXPECT_TRUE(bench.doubts_the_session());

  EXPECT_EQ(bench.journal.read(), "send 1");
  EXPECT_EQ(bench.publisher.sent[1].message_id, id_of(1).to_string());
}

TEST(OpenLane, SendsAgainInANewSession) {
  Bench bench;
  bench.begin_with({1});

  bench.lose_session();
  bench.open_session();
  bench.run();

  EXPECT_EQ(bench.journal.read(), "send 1");
}

TEST(OpenLane, SendsEverMoreSlowlyWhenNothingIsAnswered) {
  Bench bench;
  bench.begin_with({1});

  bench.expect_ever_more_slowly("send 1");
}

TEST(OpenLane, HoldsTheStreamOfARejectedMessageAlone) {
  Bench bench;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 10);
  bench.store.let_wait(3, 20);
  bench.begin();

  bench.answer(1, Kind::rejected);
  bench.store_at_broker({3});
  EXPECT_EQ(bench.journal.read(), "charge 1, mark 3");

  bench.pass(1s);
  EXPECT_EQ(bench.journal.read(), "send 1");
}

TEST(OpenLane, LeavesTheRoomOfHeldStreamsToOthers) {
  Bench bench;
  bench.options.max_in_flight_bytes = 1'000;
  const std::string payload(400, 'x');
  bench.store.let_wait(1, 10, payload);
  bench.store.let_wait(2, 20, payload);
  bench.store.let_wait(3, 30, payload);
  bench.store.let_wait(4, 10, payload);
  bench.lane.acquire();
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1, note 2 in flight, send 2");

  bench.answer(1, Kind::rejected);
  bench.answer(2, Kind::rejected);
  EXPECT_EQ(bench.journal.read(), "charge 1, note 2 in flight, send 3, charge 2, note 2 in flight");
  bench.store_at_broker({3});
  EXPECT_EQ(bench.journal.read(), "mark 3");
  EXPECT_EQ(bench.bytes_taken(), 0);

  bench.pass(1s);
  EXPECT_EQ(bench.journal.read(), "send 1, send 2");
  bench.store_at_broker({1, 2, 4});
  EXPECT_EQ(bench.journal.read(), "mark 1, send 4, mark 2, mark 4");
}

TEST(OpenLane, KeepsNoPayloadAfterAMessageThatMustBeReadAgain) {
  Bench bench;
  bench.options.max_in_flight_bytes = 1'000;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 10);
  bench.begin();
  bench.answer(1, Kind::rejected);
  bench.pass(1s);
  EXPECT_EQ(bench.journal.read(), "charge 1, send 1");

  const std::string payload(2'000, 'x');
  bench.store.let_wait(3, 10, payload);
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 2 in flight");
  EXPECT_LT(bench.bytes_taken(), bench.options.max_in_flight_bytes);

  bench.store_at_broker({1, 2, 3});
  EXPECT_EQ(bench.journal.read(), "send 2, send 3, mark 1-2, mark 3");
}

TEST(OpenLane, ParksARefusedMessageWithTheRestOfItsStream) {
  Bench bench;
  bench.store.let_wait(1, 10);
  bench.store.let_wait(2, 10);
  bench.store.let_wait(3, 20);
  bench.begin();

  bench.answer(1, Kind::refused);

  EXPECT_EQ(bench.journal.read(), "park 1 (refused), park 2 (behind)");
  EXPECT_EQ(bench.store.standing.flight_count, 1);
}

TEST(OpenLane, HoldsItsPartitionWhileTheBrokerIsFull) {
  Bench bench;
  bench.begin_with({1});

  bench.answer(1, Kind::full);
  bench.let_wait({2, 3});
  bench.pass(999ms);
  EXPECT_EQ(bench.journal.read(), "");

  // One message tells whether it still is.
  EXPECT_EQ(bench.bytes_taken(), 0);
  bench.pass(1ms);
  EXPECT_EQ(bench.journal.read(), "send 1");
  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "mark 1, note 2 in flight, send 2, send 3");
}

}  // namespace
}  // namespace stela::open_lane_test
