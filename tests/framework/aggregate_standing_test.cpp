#include "support/messages.hpp"

#include <stela/framework/aggregate_standing.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace stela::detail {
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

TEST(AggregateStanding, KnowsASaveWhoseTransactionCommitsMeanwhile) {
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

TEST(AggregateStanding, KnowsALoadWhoseTransactionIsRolledBackMeanwhile) {
  const auto outcome = std::make_shared<Outcome>();
  AggregateStanding standing;
  standing.mark_loaded(outcome, before);

  settle_while_it_ends(standing, *outcome, Outcome::State::rolled_back);

  EXPECT_THAT(message_of<UsageError>([&] { (void)standing.saved(stream, before); }),
              HasSubstr("was loaded inside a transaction that was rolled back"));
}

}  // namespace
}  // namespace stela::detail
