#include "support/messages.hpp"

#include <stela/framework/detail/aggregate_standing.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <utility>

namespace stela::detail::aggregate_standing_test {
namespace {

using test::message_of;
using ::testing::HasSubstr;
using Outcome = TransactionOutcome;

const StreamId stream = StreamId::parse("order-1");
const StreamVersion before{3};

/// Drops the marks of `standing`, whose transaction ends after they were looked at.
void settle_while_it_ends(AggregateStanding& standing, Outcome& outcome, Outcome::State end) {
  const Settled settled = standing.settled(stream, before);
  outcome.settle(end);
  standing.drop_ended(settled);
}

TEST(AggregateStanding, KnowsASaveWhoseTransactionCommitsConcurrently) {
  const auto outcome = std::make_shared<Outcome>();
  AggregateStanding standing;
  standing.mark_saved(outcome, 1, before.next());

  settle_while_it_ends(standing, *outcome, Outcome::State::committed);

  EXPECT_EQ(standing.saved(stream, before).changes, 1U);
  EXPECT_EQ(standing.settled(stream, before).committed.version, before.next());
}

TEST(AggregateStanding, KnowsASaveWhoseTransactionIsRolledBackMeanwhile) {
  const auto outcome = std::make_shared<Outcome>();
  AggregateStanding standing;
  standing.mark_saved(outcome, 1, before.next());

  settle_while_it_ends(standing, *outcome, Outcome::State::rolled_back);

  EXPECT_EQ(standing.saved(stream, before).changes, 0U);
  EXPECT_EQ(standing.saved(stream, before).version, before);
}

TEST(AggregateStanding, KnowsALoadWhoseTransactionRollsBackConcurrently) {
  const auto outcome = std::make_shared<Outcome>();
  AggregateStanding standing;
  standing.mark_loaded(outcome, before);

  settle_while_it_ends(standing, *outcome, Outcome::State::rolled_back);

  EXPECT_THAT(message_of<UsageError>([&] { (void)standing.saved(stream, before); }),
              HasSubstr("was loaded inside a transaction that was rolled back"));
}

/// Saves once in each of so many savepoints, which are released.
AggregateStanding saved_in_savepoints(const std::shared_ptr<Outcome>& transaction, int count) {
  AggregateStanding standing;
  for (int i = 1; i <= count; ++i) {
    const auto savepoint = std::make_shared<Outcome>(transaction);
    standing.mark_saved(savepoint, 1, StreamVersion{before.value() + i});
    EXPECT_EQ(standing.saved(stream, before).changes, static_cast<std::size_t>(i));
    savepoint->settle(Outcome::State::committed);
  }
  return standing;
}

TEST(AggregateStanding, KnowsManySavesInSavepointsAsOne) {
  const auto transaction = std::make_shared<Outcome>();
  constexpr int many = 100'000;
  const std::clock_t begin = std::clock();
  const AggregateStanding standing = saved_in_savepoints(transaction, many);

  // Looking at all of them each time takes minutes.
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 30);
  transaction->settle(Outcome::State::committed);
  EXPECT_EQ(standing.settled(stream, before).committed.version,
            (StreamVersion{before.value() + many}));
}

TEST(AggregateStanding, LosesAllSavesInReleasedSavepointsWithTheirTransaction) {
  const auto transaction = std::make_shared<Outcome>();
  const AggregateStanding standing = saved_in_savepoints(transaction, 3);
  transaction->settle(Outcome::State::rolled_back);

  EXPECT_EQ(standing.saved(stream, before).changes, 0U);
  EXPECT_EQ(standing.saved(stream, before).version, before);
}

TEST(AggregateStanding, LosesTheSaveInASavepointThatIsRolledBackAlone) {
  const auto transaction = std::make_shared<Outcome>();
  AggregateStanding standing = saved_in_savepoints(transaction, 2);
  const auto savepoint = std::make_shared<Outcome>(transaction);
  standing.mark_saved(savepoint, 1, StreamVersion{before.value() + 3});
  savepoint->settle(Outcome::State::rolled_back);

  EXPECT_EQ(standing.saved(stream, before).changes, 2U);
}

}  // namespace
}  // namespace stela::detail::aggregate_standing_test
