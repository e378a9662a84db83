#include "projections/models.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

namespace stela::failure_test {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Three orders, and a projector that throws where it is told to.
class ThrowingHandler : public ::testing::Test {
 protected:
  explicit ThrowingHandler(const ProjectorOptions& options = {.max_attempts = 2}) {
    const auto throw_there = test::throwing_at(poison_);
    const auto hook = [this, throw_there](ReadModel& model, const StoredEvent& event) {
      if (short_of_memory_) throw std::bad_alloc{};
      throw_there(model, event);
    };
    projections_.add(Totals<1>{hook}, options);
    projections_.add(Counts{});
    for (const char* const key : {"1", "2", "3"}) place(store_, key);
  }

  testing::ManualClock clock_;
  Store store_ = test::open_empty({.clock = &clock_});
  std::shared_ptr<std::vector<std::int64_t>> poison_ =
      std::make_shared<std::vector<std::int64_t>>(std::initializer_list<std::int64_t>{2});
  bool short_of_memory_ = false;
  Projections projections_{store_};
};

TEST_F(ThrowingHandler, KeepsEarlierRowsAndPausesBeforeARetry) {
  Runner runner{projections_};
  const RunnerTick first = runner.run_once();
  const RunnerTick second = runner.run_once();

  EXPECT_EQ(first.failed, 1);
  EXPECT_EQ(second.failed, 0) << "its back-off isn't over";
  EXPECT_THAT(standing(store_),
              ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 1 retries 2"));
  EXPECT_THAT(orders_in(store_), ElementsAre("1 jane 100 0 -"));
}

TEST_F(ThrowingHandler, IsTriedAgainAtOnceIfTheClockWasPutBack) {
  clock_.advance(24h);
  Runner runner{projections_};
  runner.run_once();
  poison_->clear();
  clock_.jump_to(testing::ManualClock::start);

  runner.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
}

TEST_F(ThrowingHandler, ContinuesWhenALaterAttemptSucceeds) {
  Runner runner{projections_};
  runner.run_once();
  poison_->clear();
  clock_.advance(1s);

  runner.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
}

TEST_F(ThrowingHandler, HaltsItsProjectorAndNamesTheEvent) {
  Runner runner{projections_};
  runner.run_once();
  clock_.advance(1s);
  const RunnerTick tick = runner.run_once();
  clock_.advance(24h);
  place(store_, "4");
  runner.run_once();

  EXPECT_EQ(tick.stopped, 1);
  EXPECT_THAT(standing(store_),
              ElementsAre("counts@1 v1 living 4", "totals@1 v1 living 1 stopped at 2"));
  const auto status = ProjectionOperations{store_}.status().at(1);
  EXPECT_EQ(status.attempts, 2);
  EXPECT_EQ(status.error, "event 2 (order.placed v1, version 1 of 'order-2'): can't take it");
  EXPECT_FALSE(projections_.wait_for("totals", GlobalSequence{2}, 1h)) << "it needn't wait";
}

TEST_F(ThrowingHandler, IsNotChargedForAShortageOfMemory) {
  Runner runner{projections_};
  short_of_memory_ = true;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(runner.run_once().failed, 1);
    clock_.advance(1h);
  }
  EXPECT_EQ(ProjectionOperations{store_}.status().at(1).attempts, 0);
  EXPECT_FALSE(ProjectionOperations{store_}.status().at(1).stopped);
  short_of_memory_ = false;
  poison_->clear();

  runner.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
}

TEST_F(ThrowingHandler, OfAProjectorShortOfMemoryBlocksNoOther) {
  short_of_memory_ = true;
  // Together with others, and alone.
  for (const auto& which : {std::vector<std::string>{}, {"totals"}, {"counts"}}) {
    place(store_, std::to_string(store_.last_sequence().value() + 1));
    EXPECT_NO_THROW((Runner{projections_, {.projectors = which}}.run_once()));
    clock_.advance(1h);
  }
  EXPECT_THAT(standing(store_),
              ElementsAre("counts@1 v1 living 6", "totals@1 v1 living 0 retries 1"));
  EXPECT_THAT(ProjectionOperations{store_}.status().at(1).error,
              HasSubstr("event 1 (order.placed v1"));
}

TEST_F(ThrowingHandler, IsTriedEverMoreRarelyWhileItIsShortOfMemory) {
  Runner runner{projections_};
  short_of_memory_ = true;
  std::vector<int> tried_at;
  for (int second = 0; second < 200; ++second, clock_.advance(1s)) {
    if (runner.run_once().failed > 0) tried_at.push_back(second);
  }
  EXPECT_THAT(tried_at, ElementsAre(0, 1, 3, 7, 15, 31, 63, 123, 183));

  short_of_memory_ = false;
  clock_.advance(60s);
  poison_->clear();
  runner.run_once();
  short_of_memory_ = true;
  place(store_, "4");
  runner.run_once();
  clock_.advance(1s);
  EXPECT_EQ(runner.run_once().failed, 1) << "it begins with short pauses again";
}

TEST_F(ThrowingHandler, InAReplayIsNotBlamedForAShortageOfMemory) {
  poison_->clear();
  Runner{projections_}.run_once();
  short_of_memory_ = true;
  Replayer replayer{projections_};
  EXPECT_THROW(replayer.run({.projectors = {"totals"}}), std::bad_alloc);
  short_of_memory_ = false;

  EXPECT_TRUE(replayer.run({.projectors = {"totals"}}).is_complete);
  EXPECT_THAT(standing(store_), ::testing::Contains("totals@2 v1 living 3"));
}

TEST_F(ThrowingHandler, IsTriedAgainWhenAnOperatorSaysSo) {
  Runner runner{projections_};
  runner.run_once();
  clock_.advance(1s);
  runner.run_once();
  poison_->clear();

  ProjectionOperations{store_}.retry("totals");
  runner.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
  EXPECT_EQ(orders_in(store_).size(), 3U);
}

TEST_F(ThrowingHandler, IsPassedOverWhenAnOperatorSaysSo) {
  Runner runner{projections_};
  runner.run_once();

  ProjectionOperations{store_}.skip("totals", GlobalSequence{2});
  runner.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
  EXPECT_THAT(orders_in(store_), ElementsAre("1 jane 100 0 -", "3 jane 100 0 -"));
  EXPECT_EQ(ProjectionOperations{store_}.status().at(1).skipped, 1);
  EXPECT_EQ(ProjectionOperations{store_}.parked("totals").at(0).state, ParkedEventState::skipped);
}

TEST_F(ThrowingHandler, IsNamedByOperations) {
  const auto skip = [&](std::string_view name, int at) {
    return test::message_of<UsageError>(
        [&] { ProjectionOperations{store_}.skip(name, GlobalSequence{at}); });
  };
  EXPECT_THAT(skip("nobody", 1), HasSubstr("'nobody' isn't in this database"));
  EXPECT_THAT(skip("totals", 2), HasSubstr("doesn't fail at event 2, nor has it parked it"));
  EXPECT_THAT(test::message_of<UsageError>([&] { ProjectionOperations{store_}.retry("totals"); }),
              HasSubstr("neither is stopped"));
  EXPECT_THAT(test::message_of<UsageError>(
                  [&] { ProjectionOperations{store_}.retry("totals", GlobalSequence{2}); }),
              HasSubstr("hasn't parked event 2"));
}

class PatientlyParkingProjector : public ThrowingHandler {
 protected:
  PatientlyParkingProjector() : ThrowingHandler{{.on_error = OnError::park, .max_attempts = 2}} {}
  ProjectorStatus totals() { return ProjectionOperations{store_}.status().at(1); }
};

TEST_F(PatientlyParkingProjector, KeepsItsBackOffWhileAParkedEventIsTried) {
  Runner runner{projections_};
  runner.run_once();
  clock_.advance(1s);
  EXPECT_EQ(runner.run_once().parked, 1);
  poison_->push_back(4);
  place(store_, "4");
  runner.run_once();
  const ProjectorStatus before = totals();
  ASSERT_EQ(before.attempts, 1);

  for (const bool works : {false, true}) {
    if (works) std::erase(*poison_, 2);
    clock_.advance(100ms);
    ProjectionOperations{store_}.retry("totals", GlobalSequence{2});
    runner.run_once();
    EXPECT_EQ(totals().parked, works ? 0 : 1);
    EXPECT_EQ(totals().attempts, 1);
    EXPECT_EQ(totals().failing, GlobalSequence{4});
    EXPECT_EQ(totals().next_attempt_at, before.next_attempt_at);
  }
}

class ParkingProjector : public ThrowingHandler {
 protected:
  ParkingProjector() : ThrowingHandler{{.on_error = OnError::park, .max_attempts = 1}} {}
};

TEST_F(ParkingProjector, TriesAParkedEventAgainWhileItIsHalted) {
  Runner{projections_}.run_once();
  Projections stopping{store_};
  stopping.add(Totals<1>{test::throwing_at(poison_)}, {.max_attempts = 1});
  *poison_ = {4};
  place(store_, "4");
  EXPECT_EQ(Runner{stopping}.run_once().stopped, 1);

  ProjectionOperations{store_}.retry("totals", GlobalSequence{2});
  Runner{stopping}.run_once();

  EXPECT_THAT(ProjectionOperations{store_}.parked("totals"), IsEmpty());
  EXPECT_THAT(standing(store_),
              ::testing::Contains(std::string{"totals@1 v1 living 3 stopped at 4"}));
}

TEST_F(ParkingProjector, ParksTheEventAndContinues) {
  const RunnerTick tick = Runner{projections_}.run_once();

  EXPECT_EQ(tick.parked, 1);
  EXPECT_THAT(standing(store_), ElementsAre("counts@1 v1 living 3", "totals@1 v1 living 3"));
  EXPECT_THAT(orders_in(store_), ElementsAre("1 jane 100 0 -", "3 jane 100 0 -"));
  const auto parked = ProjectionOperations{store_}.parked("totals");
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].sequence, GlobalSequence{2});
  EXPECT_THAT(parked[0].error, HasSubstr("can't take it"));
}

TEST_F(ParkingProjector, TakesAParkedEventInWhenItWorks) {
  Runner runner{projections_};
  runner.run_once();

  ProjectionOperations{store_}.retry("totals", GlobalSequence{2});
  runner.run_once();
  const auto still = ProjectionOperations{store_}.parked("totals");
  poison_->clear();
  ProjectionOperations{store_}.retry("totals", GlobalSequence{2});
  runner.run_once();

  ASSERT_EQ(still.size(), 1U) << "it threw again";
  EXPECT_EQ(still[0].attempts, 2);
  EXPECT_THAT(ProjectionOperations{store_}.parked("totals"), IsEmpty());
  EXPECT_EQ(orders_in(store_).size(), 3U);
}

TEST_F(ParkingProjector, ParksAnEventAgainThatMemoryRunsOutFor) {
  Runner runner{projections_};
  runner.run_once();
  short_of_memory_ = true;
  place(store_, "4");
  ProjectionOperations{store_}.retry("totals", GlobalSequence{2});
  EXPECT_NO_THROW(runner.run_once());

  EXPECT_THAT(standing(store_), ::testing::Contains("counts@1 v1 living 4"));
  EXPECT_EQ(ProjectionOperations{store_}.parked("totals").at(0).attempts, 2);
}

TEST_F(ParkingProjector, ListsItsParkedEventsPageByPage) {
  poison_->push_back(3);
  Runner{projections_}.run_once();
  ProjectionOperations operations{store_};

  const auto first = operations.parked("totals", {.limit = 1});
  const auto second = operations.parked("totals", {.after = first.at(0).sequence, .limit = 1});

  EXPECT_EQ(first.at(0).sequence, GlobalSequence{2});
  EXPECT_EQ(first.at(0).type, "order.placed");
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].sequence, GlobalSequence{3});
  EXPECT_THROW(operations.parked("totals", {.limit = 0}), UsageError);
}

TEST_F(ParkingProjector, GivesAParkedEventUp) {
  Runner runner{projections_};
  runner.run_once();

  ProjectionOperations{store_}.skip("totals", GlobalSequence{2});

  EXPECT_EQ(ProjectionOperations{store_}.parked("totals").at(0).state, ParkedEventState::skipped);
}

/// For each n: what stood before the n-th event stands, and in the end everything does.
TEST(Failures, LeaveACleanPrefixAtWhicheverEventTheHandlerThrows) {
  constexpr int events = 12;
  std::vector<std::string> whole;
  for (int n = 0; n <= events; ++n) {
    auto store = test::open_empty();
    for (int i = 0; i < events / 3; ++i) {
      place(store, std::to_string(i));
      test::note(store, std::to_string(i));
      ship(store, std::to_string(i));
    }
    auto poison = std::make_shared<std::vector<std::int64_t>>();
    if (n > 0) poison->push_back(n);
    Projections projections{store};
    projections.add(Totals<1>{test::throwing_at(poison)}, {.retry_backoff = 0ms});
    projections.add(Counts{});
    Runner runner{projections};

    runner.run_once();
    if (n > 0) {
      EXPECT_EQ(ProjectionOperations{store}.status().at(1).position, GlobalSequence{n - 1});
      EXPECT_EQ(orders_in(store).size(), static_cast<std::size_t>((n + 1) / 3)) << n;
      poison->clear();
      ProjectionOperations{store}.retry("totals");
      runner.run_once();
    } else {
      whole = orders_in(store);
    }
    EXPECT_EQ(orders_in(store), whole) << "thrown at " << n;
    EXPECT_EQ(ModelReader{store}.value<int>("SELECT sum(n) FROM counts"), events * 2 / 3);
  }
}

/// What a handler can do to the transaction that it is called in.
TEST(Failures, AHandlerThatEndsItsTransactionIsStopped) {
  for (const bool has_company : {false, true}) {
    auto store = test::open_empty();
    place(store, "1");
    place(store, "2");
    Projections projections{store};
    projections.add(
        Totals<1>{[](ReadModel& model, const StoredEvent& event) {
          if (event.sequence.value() != 2) return;
          try {
            model.execute("INSERT OR ROLLBACK INTO {orders} VALUES ('1', '', 0, 0, '')");
          } catch (const UniquenessViolated&) {
          }
        }},
        {.max_attempts = 1});
    if (has_company) projections.add(Counts{});

    Runner{projections}.run_once();

    EXPECT_EQ(standing(store).back(), "totals@1 v1 living 1 stopped at 2");
    EXPECT_THAT(ProjectionOperations{store}.status().back().error,
                HasSubstr("ended the transaction"));
    EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -"));
    EXPECT_EQ(standing(store).front(),
              has_company ? "counts@1 v1 living 2" : standing(store).back());
  }
}

TEST(Failures, AnEventOfItsSetInAVersionThatItDoesNotKnowIsLeftToANewerRunner) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{}, {.max_attempts = 1});
  test::append(store, "order-1", {NewEvent{"order.placed", 9, false, "{}"}});

  Runner{projections}.run_once();

  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 0 retries 1"));
  EXPECT_THAT(ProjectionOperations{store}.status().at(0).error, HasSubstr("order.placed"));
}

}  // namespace
}  // namespace stela::failure_test
