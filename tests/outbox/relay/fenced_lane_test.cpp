// What a fenced lane sends and notes, step by step.
#include "relay/fenced_lane.hpp"
#include "outbox/relay/lane_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::fenced_lane_test {
namespace {

using namespace std::chrono_literals;
using test::id_of;
using test::Kind;
using test::ours;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

using Bench = test::LaneBench<relay::FencedLane>;

// --- the chain

TEST(FencedLane, ReadsBackBeforeItSendsAnything) {
  Bench bench;
  bench.let_wait({1});
  bench.store.standing.broker_sequence = 3;

  bench.lane.acquire();
  bench.run();

  EXPECT_EQ(bench.journal.read(), "read back from 3");
}

TEST(FencedLane, SendsInSequenceOrderEachAfterTheOneBefore) {
  Bench bench;
  bench.let_wait({5, 1, 3});
  bench.lane.acquire();
  bench.journal.read();

  bench.find({});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "note 3 in flight, send 1 after 0, send 3 after 1, send 5 after 2");
  EXPECT_EQ(bench.publisher.sent[3].after_id, id_of(1).to_string());
  EXPECT_EQ(bench.publisher.sent[5].previous, GlobalSequence{3});
}

TEST(FencedLane, ContinuesTheChainAtThePositionOfItsPartition) {
  Bench bench;
  bench.let_wait({4});
  bench.store.standing.broker_sequence = 9;
  bench.store.standing.broker_id = id_of(2).to_string();
  bench.lane.acquire();
  bench.journal.read();

  bench.find({ours(2, 9)});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 4 after 9");
  EXPECT_EQ(bench.publisher.sent[4].after_id, id_of(2).to_string());
}

TEST(FencedLane, HasOneMessageInFlightWhereTheSubjectIsTheFence) {
  Bench bench{Fence::subject};
  bench.let_wait({1, 2});
  bench.lane.acquire();
  bench.journal.read();

  bench.find({});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1 after 0");

  bench.store_at_broker({1});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "mark 1, note 1 in flight, send 2 after 1");
}

TEST(FencedLane, ContinuesAfterForeignMessagesUnderASubjectFence) {
  Bench bench{Fence::subject};
  bench.let_wait({1, 2, 3});
  bench.begin();

  bench.store_at_broker_as(1, 5);
  EXPECT_EQ(bench.journal.read(), "mark 1, note 1 in flight, send 2 after 5");
  EXPECT_EQ(bench.publisher.sent[2].after_id, id_of(1).to_string());
  EXPECT_EQ(bench.store.standing.broker_sequence, 5U);

  bench.store_at_broker_as(2, 6);
  EXPECT_EQ(bench.journal.read(), "mark 2, note 1 in flight, send 3 after 6");
}

TEST(FencedLane, LooksAgainWhenAMessageWasStoredWhereItCannotStand) {
  for (const Fence fence : {Fence::stream, Fence::subject}) {
    Bench bench{fence};
    bench.let_wait({1});
    bench.store.standing.broker_sequence = 3;
    bench.lane.acquire();
    bench.find({ours(9, 3)});
    bench.run();
    bench.journal.read();

    bench.store_at_broker_as(1, 2);
    EXPECT_EQ(bench.journal.read(), "read back from 3");
  }
}

// --- marks

TEST(FencedLane, MarksOnlyAcknowledgedMessages) {
  Bench bench;
  bench.options.batch_size = 2;
  bench.begin_with({1, 2, 3});

  bench.store_at_broker({1, 2});

  EXPECT_EQ(bench.journal.read(), "mark 1-2");
  EXPECT_EQ(bench.store.standing.flight_count, 1);
}

TEST(FencedLane, MarksNothingAfterAMessageWithoutAnswer) {
  Bench bench;
  bench.begin_with({1, 2});

  bench.store_at_broker({2});

  EXPECT_EQ(bench.journal.read(), "");
  EXPECT_FALSE(bench.lane.is_idle());
}

TEST(FencedLane, CarriesItsEpochInEveryChange) {
  Bench bench;
  bench.begin_with({1, 2});
  bench.store_at_broker({1});
  bench.answer(2, Kind::rejected);
  bench.find({ours(1, 1)});
  bench.lane.release();

  EXPECT_GE(bench.store.epochs.size(), 4U);
  EXPECT_THAT(bench.store.epochs, Each(7));
}

TEST(FencedLane, MarksAgainWhenTheStoreWasBusy) {
  Bench bench;
  bench.begin_with({1});
  bench.store.is_busy = true;

  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "");

  bench.pass(5s);
  EXPECT_EQ(bench.journal.read(), "mark 1");
}

TEST(FencedLane, WritesEverMoreRarelyToAStoreThatIsFull) {
  Bench bench;
  bench.begin_with({1});
  bench.let_wait({2});
  bench.store.is_full = true;

  for (int step = 0; step < 80; ++step) {
    bench.clock.advance(50ms);
    bench.run();
  }

  EXPECT_GE(bench.store.refused, 2);
  EXPECT_LE(bench.store.refused, 8) << "50 ms, 100 ms … 2 s apart";
}

// --- failures of a message

TEST(FencedLane, WaitsForTheOtherAnswersBeforeItReadsBack) {
  Bench bench;
  bench.begin_with({1, 2, 3});

  bench.answer(1, Kind::rejected);
  bench.answer(2, Kind::stored_before);
  EXPECT_EQ(bench.journal.read(), "");

  bench.answer(3, Kind::stored_before);
  EXPECT_EQ(bench.journal.read(), "read back from 1");
}

TEST(FencedLane, ParksARefusedMessageAndClosesTheChainOverIt) {
  Bench bench;
  bench.begin_with({1, 2, 3});

  bench.store_at_broker({1});
  bench.answer(2, Kind::refused, "too large");
  bench.answer(3, Kind::stored_before);
  bench.find({ours(1, 1)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "read back from 1, mark 1, park 2 (refused), note 1 in flight, send 3 after 1");
  EXPECT_THAT(bench.incidents, Contains("parked: too large"));
}

TEST(FencedLane, SendsOneBehindARefusedMessageAndThenEverMore) {
  Bench bench;
  bench.begin_with({1, 2, 3, 4, 5, 6, 7});

  bench.answer(1, Kind::refused, "too large");
  for (const int behind : {2, 3, 4, 5, 6, 7}) bench.answer(behind, Kind::stored_before);
  bench.find({});
  bench.run();
  EXPECT_EQ(bench.journal.read(),
            "read back from 1, park 1 (refused), note 1 in flight, send 2 after 0");
  EXPECT_EQ(bench.store.messages_read, 7 + 1);

  bench.store_at_broker({2});
  EXPECT_EQ(bench.journal.read(), "mark 2, note 1 in flight, send 3 after 1");
  bench.store_at_broker({3});
  EXPECT_EQ(bench.journal.read(), "mark 3, note 2 in flight, send 4 after 2, send 5 after 3");
}

TEST(FencedLane, SaysHowLargeARefusedMessageIsAndWhatIsTaken) {
  Bench bench;
  bench.store.let_wait(1, 1, std::string(100'000, 'x'));
  bench.begin();

  bench.lane.on_answer({.request = bench.publisher.sent.at(1).request,
                        .kind = Kind::refused,
                        .detail = "no",
                        .failure = FailureClass::too_large,
                        .size_limit = {65'536, "max_payload of the server"}});
  bench.find({});

  EXPECT_THAT(bench.incidents, Contains("parked: its payload has 97.6 KiB, and max_payload of the "
                                        "server is 64 KiB: no"));
}

TEST(FencedLane, TakesTheLimitsThatWereMetFromTheStream) {
  const auto trouble_of = [](Kind kind, FailureClass failure) {
    Bench bench;
    bench.begin_with({1});
    bench.lane.on_answer({.request = bench.publisher.sent.at(1).request,
                          .kind = kind,
                          .detail = "no",
                          .failure = failure});
    bench.lane.on_answer({.request = bench.publisher.question,
                          .kind = Kind::read_back,
                          .size_limit = {2, "max_msg_size of 'SHOP'"},
                          .first_sequence = 1,
                          .fullness = 1,
                          .limit = "max_bytes of 'SHOP' is 7"});
    return std::pair{bench.incidents, bench.store.last_trouble};
  };

  const auto [parked, nothing] = trouble_of(Kind::refused, FailureClass::too_large);
  EXPECT_THAT(parked,
              Contains("parked: its payload has 2 bytes without its headers, and max_msg_size "
                       "of 'SHOP' is 2 bytes: no"));
  const auto [failed, trouble] = trouble_of(Kind::full, FailureClass::stream_full);
  EXPECT_EQ(trouble.error, "no; max_bytes of 'SHOP' is 7");
  EXPECT_EQ(trouble.failure, FailureClass::stream_full);
}

TEST(FencedLane, TriesAtOnceIfAnOperatorSaysSo) {
  Bench bench;
  bench.begin_with({1});
  bench.answer(1, Kind::full, "offline");
  bench.find({});
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1");

  bench.lane.retry();
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1") << "what was changed there?";
  bench.lane.retry();
  bench.find({});
  bench.run();

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1 after 0");
}

TEST(FencedLane, TriesARejectedMessageAgainAfterItsBackOff) {
  Bench bench;
  bench.begin_with({1, 2});

  bench.answer(1, Kind::rejected);
  bench.answer(2, Kind::stored_before);
  bench.find({});
  bench.pass(999ms);
  EXPECT_EQ(bench.journal.read(), "read back from 1, charge 1");

  bench.pass(1ms);
  EXPECT_EQ(bench.journal.read(), "note 2 in flight, send 1 after 0, send 2 after 1");
}

TEST(FencedLane, ParksAMessageAfterItsAttemptsWithTheRestOfItsStream) {
  Bench bench;
  bench.store.let_wait(1, 10).attempts = 1;
  bench.store.let_wait(2, 10);
  bench.store.let_wait(3, 20);
  bench.begin();

  bench.answer(1, Kind::rejected);
  bench.answer(2, Kind::stored_before);
  bench.answer(3, Kind::stored_before);
  bench.find({});
  bench.run();

  EXPECT_EQ(
      bench.journal.read(),
      "read back from 1, park 1 (attempts), park 2 (behind), note 1 in flight, send 3 after 0");
}

TEST(FencedLane, SkipsRefusedMessagesIfConfigured) {
  Bench bench;
  bench.options.on_poison = OnPoison::skip;
  bench.begin_with({1});

  bench.answer(1, Kind::refused);
  bench.find({});

  EXPECT_EQ(bench.journal.read(), "read back from 1, skip 1 (refused)");
}

TEST(FencedLane, StopsAtRefusedMessagesIfConfigured) {
  Bench bench;
  bench.options.on_poison = OnPoison::stop;
  bench.begin_with({1});

  bench.answer(1, Kind::refused);
  bench.find({});

  EXPECT_EQ(bench.journal.read(), "read back from 1, charge 1, stop: poison, release");
}

TEST(FencedLane, SendsARepublishedMessageUnderANewId) {
  Bench bench;
  relay::PendingMessage& again = bench.store.let_wait(1, 10);
  again.redelivery = 5;
  again.is_republished = true;
  bench.begin();

  EXPECT_EQ(bench.publisher.sent[1].message_id, id_of(1).to_string() + ".r5");
  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "mark 1r5");
}

TEST(FencedLane, NamesTheGenerationAfterAResizeWhereEachPartitionHasItsOwnStream) {
  Bench bench;
  bench.store.let_wait(1, 10).generation = {1, GlobalSequence{1}};
  bench.store.let_wait(7, 10).generation = {2, GlobalSequence{5}};
  bench.begin();
  EXPECT_FALSE(bench.publisher.sent[1].generation);
  ASSERT_TRUE(bench.publisher.sent[7].generation);
  EXPECT_EQ(bench.publisher.sent[7].generation->number, 2);
  EXPECT_EQ(bench.publisher.sent[7].generation->first, GlobalSequence{5});

  Bench together{Fence::subject};
  together.store.let_wait(7, 10).generation = {2, GlobalSequence{5}};
  together.begin();
  EXPECT_FALSE(together.publisher.sent[7].generation);
}

// --- the lease

TEST(FencedLane, LosesAPartitionThatWasTakenOver) {
  Bench bench;
  bench.begin_with({1});
  bench.store.is_taken_over = true;

  bench.store_at_broker({1});

  EXPECT_FALSE(bench.lane.is_owned());
  EXPECT_EQ(bench.journal.read(), "");
  EXPECT_THAT(bench.incidents, ElementsAre("fenced: its epoch has passed"));
}

TEST(FencedLane, SendsNothingOnceItsLeaseCanNoLongerBeTrusted) {
  Bench bench;
  bench.begin();
  bench.clock.advance(bench.options.lease_ttl);
  bench.let_wait({1});

  bench.run();
  EXPECT_EQ(bench.journal.read(), "");

  bench.lane.renew();
  bench.run();
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1 after 0");
}

TEST(FencedLane, HandsOverOnceMessagesInFlightAreMarked) {
  Bench bench;
  bench.begin_with({1});

  bench.lane.drain();
  bench.let_wait({2});
  bench.run();
  EXPECT_FALSE(bench.lane.is_idle());

  bench.store_at_broker({1});
  EXPECT_TRUE(bench.lane.is_idle());
  EXPECT_EQ(bench.journal.read(), "mark 1");
}

// --- a broker that isn't set up

TEST(FencedLane, HoldsItsPartitionUntilTheBrokerIsSetUpForIt) {
  Bench bench;
  bench.begin_with({1});

  bench.answer(1, Kind::misconfigured, "no such stream");
  bench.find({});
  EXPECT_EQ(bench.lane.misfit(), "no such stream");
  EXPECT_FALSE(bench.doubts_the_session());
  bench.run();
  EXPECT_EQ(bench.journal.read(), "read back from 1");

  bench.pass(1s);
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 1 after 0");
  bench.store_at_broker({1});
  EXPECT_EQ(bench.lane.misfit(), "");
}

}  // namespace
}  // namespace stela::fenced_lane_test
