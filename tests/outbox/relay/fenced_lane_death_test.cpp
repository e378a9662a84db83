// What a fenced lane does after the sudden death of the partition's owner before it: any of what
// that had in flight may have killed it.
#include "outbox/relay/lane_bench.hpp"
#include "relay/fenced_lane.hpp"
#include "support/print_enums.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace stela::fenced_lane_death_test {
namespace {

using namespace std::chrono_literals;
using test::Kind;
using test::ours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bench = test::LaneBench<relay::FencedLane>;

/// Takes the partition over from an owner that died with so many in flight, and finds nothing at
/// the broker.
void take_over(Bench& bench, std::int64_t in_flight, std::int64_t through) {
  bench.store.standing.unclean = true;
  bench.store.standing.flight_count = in_flight;
  bench.store.standing.flight_through = GlobalSequence{through};
  bench.lane.acquire();
  bench.journal.read();
  bench.find({});
  bench.run();
}

TEST(FencedLaneAfterADeath, SendsASixteenthOfTheSuspectsAtATime) {
  Bench bench;
  for (std::int64_t sequence = 1; sequence <= 33; ++sequence) bench.store.let_wait(sequence, 1);

  take_over(bench, 32, 32);
  EXPECT_EQ(bench.journal.read(), "note 2 in flight, send 1 after 0, send 2 after 1");

  bench.store_at_broker({1});
  EXPECT_EQ(bench.journal.read(), "");
  bench.store_at_broker({2});
  EXPECT_EQ(bench.journal.read(), "mark 1-2, note 2 in flight, send 3 after 2, send 4 after 3");
}

TEST(FencedLaneAfterADeath, SendsTheLastSuspectAlone) {
  Bench bench;
  bench.let_wait({1, 2, 3, 4});

  take_over(bench, 2, 2);
  bench.store_at_broker({1});

  EXPECT_EQ(bench.journal.read(),
            "note 1 in flight, send 1 after 0, mark 1, note 1 in flight, send 2 after 1");
}

TEST(FencedLaneAfterADeath, SendsTheRestAtOnceWhenTheSuspectsArePast) {
  Bench bench;
  bench.let_wait({1, 2, 3, 4});
  take_over(bench, 2, 2);
  bench.store_at_broker({1});
  bench.journal.read();

  bench.store_at_broker({2});

  EXPECT_EQ(bench.journal.read(),
            "mark 2, note 1 in flight, send 3 after 2, note 2 in flight, send 4 after 3");
}

TEST(FencedLaneAfterADeath, SuspectsRedeliveriesOfOperators) {
  Bench bench;
  bench.store.standing.published_through = GlobalSequence{9};
  for (const std::int64_t sequence : {5, 6}) {
    bench.store.let_wait(sequence, sequence).redelivery = sequence;
  }

  take_over(bench, 2, 6);

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, send 5 after 0");
}

TEST(FencedLaneAfterADeath, SuspectsNoStoredMessage) {
  Bench bench;
  bench.let_wait({1, 2, 3, 4});
  bench.store.standing.unclean = true;
  bench.store.standing.flight_count = 2;
  bench.store.standing.flight_through = GlobalSequence{2};
  bench.lane.acquire();
  bench.journal.read();

  bench.find({ours(1, 1), ours(2, 2)});
  bench.run();

  EXPECT_EQ(bench.journal.read(),
            "mark 1, mark 2, note 2 in flight, send 3 after 2, send 4 after 3");
}

// --- a message that was alone

class AMessageAloneAtADeath : public ::testing::TestWithParam<Fence> {
 protected:
  AMessageAloneAtADeath() { bench.let_wait({1}); }
  /// After the lane has handed it over, and before it notes that it lives.
  void once_it_is_sent(std::function<void()> what) {
    bench.publisher.on_flush = [this, what = std::move(what)] {
      if (!bench.publisher.sent.empty()) what();
    };
  }

  Bench bench{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Fences, AMessageAloneAtADeath,
                         ::testing::Values(Fence::stream, Fence::subject),
                         ::testing::PrintToStringParamName());

TEST_P(AMessageAloneAtADeath, IsChargedUntilItsWorkerHasSurvivedSendingIt) {
  take_over(bench, 1, 1);

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0, acquit 1");
  EXPECT_EQ(bench.store.last_trouble.message_attempts, 0);
}

TEST_P(AMessageAloneAtADeath, IsNotParkedHoweverManyWorkersDieWhileItWaitsForTheBroker) {
  for (int deaths = 0; deaths < 20; ++deaths) take_over(bench, 1, 1);

  EXPECT_EQ(bench.store.last_trouble.message_attempts, 0);
  EXPECT_THAT(bench.store.parked, IsEmpty());
}

TEST_P(AMessageAloneAtADeath, IsNotParkedForOneUnexplainedDeath) {
  bench.options.max_attempts = 1;

  take_over(bench, 1, 1);

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0, acquit 1");
}

TEST_P(AMessageAloneAtADeath, IsChargedThoughTheStoreWasBusyAtFirst) {
  bench.store.is_busy = true;
  take_over(bench, 1, 1);
  EXPECT_EQ(bench.journal.read(), "");

  bench.pass(1s);

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0, acquit 1");
}

TEST_P(AMessageAloneAtADeath, IsAcquittedAsSoonAsTheStoreIsNotBusyAnyMore) {
  once_it_is_sent([this] { bench.store.is_busy = true; });
  take_over(bench, 1, 1);
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0");

  bench.pass(1s);

  EXPECT_EQ(bench.journal.read(), "acquit 1");
}

TEST_P(AMessageAloneAtADeath, NeedsNoAcquittalOnceItIsStored) {
  once_it_is_sent([this] { bench.store.is_busy = true; });
  take_over(bench, 1, 1);
  bench.journal.read();

  bench.store_at_broker({1});
  bench.pass(1s);

  EXPECT_EQ(bench.journal.read(), "mark 1");
}

TEST_P(AMessageAloneAtADeath, IsAcquittedOfNoRejection) {
  once_it_is_sent([this] { bench.store.is_busy = true; });
  take_over(bench, 1, 1);
  bench.publisher.on_flush = [] {};

  bench.answer(1, Kind::rejected);
  bench.pass(1s);
  bench.find({});
  bench.pass(10s);

  EXPECT_EQ(bench.journal.read(),
            "note 1 in flight, charge 1, send 1 after 0, read back from 1, charge 1, "
            "note 1 in flight, send 1 after 0");
  EXPECT_EQ(bench.store.last_trouble.message_attempts, 1);
}

TEST_P(AMessageAloneAtADeath, StaysChargedIfItsWorkerLosesThePartitionBeforeItCanSayThatItLives) {
  once_it_is_sent([this] { bench.store.is_taken_over = true; });
  take_over(bench, 1, 1);
  EXPECT_FALSE(bench.lane.is_owned());
  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0");
  bench.publisher.on_flush = [] {};
  bench.store.is_taken_over = false;

  take_over(bench, 1, 1);

  EXPECT_EQ(bench.journal.read(), "note 1 in flight, charge 1, send 1 after 0, acquit 1");
  EXPECT_EQ(bench.store.last_trouble.message_attempts, 1);
}

TEST_P(AMessageAloneAtADeath, IsParkedOnceItsAttemptsAreUsedUp) {
  bench.store.let_wait(1, 1).attempts = bench.options.max_attempts;

  take_over(bench, 1, 1);

  EXPECT_EQ(bench.journal.read(), "park 1 (attempts)");
}

// --- one death after the other

/// Thrown through the lane when its worker dies: nothing of it is left.
struct Killed {};

/// Workers that own one partition, one after the other, and a broker that stores what they flush.
class Succession {
 public:
  explicit Succession(std::int64_t messages) {
    for (std::int64_t sequence = 1; sequence <= messages; ++sequence) {
      bench.store.let_wait(sequence, sequence);
    }
    bench.options.max_attempts = 3;
    bench.publisher.on_publish = [this](std::int64_t sequence) {
      if (sequence == kills_in_publish) throw Killed{};
      under_way_.push_back(sequence);
    };
    bench.publisher.on_flush = [this] {
      if (std::ranges::find(under_way_, kills_in_flush) != under_way_.end()) throw Killed{};
    };
  }

  /// Workers come and die until one of them has nothing left to send.
  void run() {
    while (deaths.size() < 1'000) {
      try {
        take_over();
        while (!under_way_.empty()) answer();
        return;
      } catch (const Killed&) {
        die();
      }
    }
  }

  void take_over() {
    round_trips_left_ = round_trips_a_life;
    bench.lane.acquire();
    std::vector<FoundMessage> found;
    for (const FoundMessage& stored : stored_) {
      if (stored.broker_sequence >= bench.store.standing.broker_sequence) found.push_back(stored);
    }
    bench.find(std::move(found));
    bench.run();
  }

  /// The worker dies, and what it sent never arrives.
  void die() {
    deaths.push_back(bench.store.standing.flight_count);
    bench.store.standing.unclean = true;
    under_way_.clear();
  }

  Bench bench;
  std::int64_t kills_in_publish = 0;
  std::int64_t kills_in_flush = 0;
  /// After that a worker dies of something else.
  int round_trips_a_life = 1'000'000;
  /// How many messages were in flight at each death.
  std::vector<std::int64_t> deaths;
  int round_trips = 0;

 private:
  /// The broker stores everything that is under way, and answers.
  void answer() {
    if (--round_trips_left_ < 0) throw Killed{};
    ++round_trips;
    for (const std::int64_t sequence : std::exchange(under_way_, {})) {
      const auto& sent = bench.publisher.sent.at(sequence);
      stored_.push_back(ours(sequence, sent.position));
      bench.lane.on_answer(
          {.request = sent.request, .kind = Kind::stored, .broker_sequence = sent.position});
    }
    bench.run();
  }

  int round_trips_left_ = 0;
  std::vector<std::int64_t> under_way_;
  std::vector<FoundMessage> stored_;
};

TEST(FencedLaneAfterADeath, IsThroughWithHealthySuspectsInSixteenRoundTrips) {
  Succession workers{2'000};
  workers.take_over();
  workers.die();

  workers.run();

  EXPECT_THAT(workers.deaths, ElementsAre(2'000));
  EXPECT_EQ(workers.round_trips, 16);
  EXPECT_EQ(workers.bench.store.standing.published_through, GlobalSequence{2'000});
}

class AMessageThatKills : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Places, AMessageThatKills, ::testing::Values(1, 126, 1'000, 2'000));

TEST_P(AMessageThatKills, IsAloneAfterThreeDeathsAndParkedAfterItsAttempts) {
  Succession workers{3'000};
  workers.kills_in_flush = GetParam();

  workers.run();

  EXPECT_THAT(workers.deaths, ElementsAre(2'000, 125, 7, 1, 1, 1, 1));
  EXPECT_THAT(workers.bench.store.parked, ElementsAre(GetParam()));
  EXPECT_EQ(workers.bench.store.standing.published_through, GlobalSequence{3'000});
}

TEST_P(AMessageThatKills, IsAlsoFoundWhenItKillsBeforeTheRestIsSent) {
  Succession workers{3'000};
  workers.kills_in_publish = GetParam();

  workers.run();

  EXPECT_LE(workers.deaths.size(), 7U);
  EXPECT_THAT(workers.bench.store.parked, ElementsAre(GetParam()));
  EXPECT_EQ(workers.bench.store.standing.published_through, GlobalSequence{3'000});
}

TEST_P(AMessageThatKills, IsParkedAloneThoughWorkersDieOfOtherThingsToo) {
  Succession workers{3'000};
  workers.kills_in_flush = GetParam();
  workers.round_trips_a_life = 5;

  workers.run();

  EXPECT_THAT(workers.bench.store.parked, ElementsAre(GetParam()));
  EXPECT_EQ(workers.bench.store.standing.published_through, GlobalSequence{3'000});
}

TEST(WorkersThatDieOfOtherThings, GetEverythingThrough) {
  Succession workers{3'000};
  workers.round_trips_a_life = 1;

  workers.run();

  EXPECT_THAT(workers.bench.store.parked, IsEmpty());
  EXPECT_EQ(workers.bench.store.standing.published_through, GlobalSequence{3'000});
}

}  // namespace
}  // namespace stela::fenced_lane_death_test
