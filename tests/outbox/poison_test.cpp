// What becomes of a message that can't be published, and the operator's way out.
#include "outbox/shop.hpp"
#include "support/print_enums.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::poison_test {
namespace {

using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PartitionId all{0};

class Poison : public ::testing::TestWithParam<Fence> {
 protected:
  static OutboxOptions outbox() { return {.fence = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(EveryFence, Poison,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(Poison, ParksTheMessageAndItsStream) {
  Shop shop{outbox()};
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1", "order-2"});
  shop.relay();
  shop.append("order-1");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "3");
  EXPECT_THAT(shop.list(), ElementsAre("1 order-1 parked refused", "2 order-1 parked behind",
                                       "4 order-1 parked behind"));
  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->last_error, "the broker doesn't want it");

  shop.operations.discard({.sequences = {GlobalSequence{1}}});
  shop.append("order-1");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "3 2r1 4r2 5");
  EXPECT_EQ(shop.totals(), "1 discarded, 4 published");
}

TEST_P(Poison, IsParkedAfterItsLastAttempt) {
  Shop shop{outbox(), {.max_attempts = 3}};
  shop.rejected = {1};
  shop.append_all({"order-1", "order-2"});
  for (int i = 1; i < 3; ++i) {
    shop.relay();
    EXPECT_EQ(shop.operations.show(GlobalSequence{1})->attempts, i);
    EXPECT_EQ(shop.operations.show(GlobalSequence{1})->state, MessageState::retrying);
    shop.clock.advance(std::chrono::seconds{4});
  }
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2");
  EXPECT_THAT(shop.list(), ElementsAre("1 order-1 parked attempts"));
  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->attempts, 3);
}

TEST_P(Poison, HaltsThePartitionUntilItIsResumed) {
  Shop shop{outbox(), {.on_poison = OnPoison::stop}};
  shop.too_large = {2};
  shop.append_all({"order-1", "order-2", "order-2"});
  shop.relay();
  shop.append("order-2");
  shop.relay();

  const PartitionStatus stopped = shop.operations.status().partitions.front();
  EXPECT_EQ(stopped.stopped, StopReason::poison);
  EXPECT_THAT(stopped.stopped_detail, HasSubstr("event 2 can't be published: the broker"));
  EXPECT_EQ(stopped.failure, FailureClass::other);
  EXPECT_EQ(shop.broker.log(all), "1");
  const auto poison = shop.operations.show(GlobalSequence{2});
  EXPECT_EQ(poison->state, MessageState::retrying) << "a resume tries it again";
  EXPECT_EQ(poison->attempts, 1);
  EXPECT_EQ(poison->last_error, "the broker doesn't want it");
  EXPECT_EQ(shop.operations.show(GlobalSequence{3})->state, MessageState::pending);

  shop.too_large.clear();
  shop.operations.resume(all);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3 4");
  EXPECT_EQ(shop.totals(), "4 published");
  EXPECT_THAT(shop.actions(), ElementsAre("ann resume all, stopped by poison"));
}

TEST_P(Poison, HaltsThePartitionUntilTheMessageIsDiscarded) {
  Shop shop{outbox(), {.on_poison = OnPoison::stop}};
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1"});
  shop.relay();

  shop.operations.discard({.sequences = {GlobalSequence{1}}});
  EXPECT_EQ(shop.totals(), "1 pending, 1 discarded, 1 stopped");
  EXPECT_THAT(shop.operations.status().partitions.front().stopped_detail,
              HasSubstr("event 1 is discarded: the broker"));
  shop.operations.resume(all);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2");
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
}

TEST_P(Poison, HaltsAgainOnARetriedMessage) {
  Shop shop{outbox(), {.on_poison = OnPoison::stop}};
  shop.append("order-1");
  shop.relay();
  shop.operations.republish({.stream = "order-1"});
  shop.too_large = {1};
  shop.relay();
  EXPECT_EQ(shop.operations.status().stopped, 1);
  shop.append("order-2");

  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->last_error, "the broker doesn't want it");

  shop.operations.discard({.sequences = {GlobalSequence{1}}});
  EXPECT_THAT(shop.operations.status().partitions.front().stopped_detail,
              HasSubstr("event 1 is discarded: the broker"));
  shop.operations.resume(all);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2");
  EXPECT_EQ(shop.totals(), "2 published") << "it was published before, and still is";
}

TEST_P(Poison, IsSkippedOnlyOnRequestAndOnTheRecord) {
  Shop shop{outbox(), {.on_poison = OnPoison::skip}};
  shop.too_large = {1};
  shop.append_all({"order-1", "order-1"});
  EXPECT_EQ(shop.relay().skipped, 1);

  EXPECT_EQ(shop.broker.log(all), "2");
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
  EXPECT_THAT(shop.list({.state = MessageState::discarded}),
              ElementsAre("1 order-1 discarded skipped"));
}

TEST_P(Poison, LetsEarlierMessagesPass) {
  Shop shop{outbox(), {.retry_backoff = std::chrono::seconds{1}, .max_attempts = 2}};
  shop.rejected = {2};
  shop.append("order-1");
  shop.relay();
  shop.append_all({"order-1", "order-1"});
  shop.relay();
  // Fetched while the message before it in its stream was rejected, and waits.
  shop.operations.republish({.to = GlobalSequence{1}});
  for (int i = 0; i < 5; ++i) {
    shop.relay();
    shop.clock.advance(std::chrono::seconds{2});
  }

  EXPECT_EQ(shop.broker.log(all), "1 1r1");
  EXPECT_EQ(shop.totals(), "2 parked, 1 published");
}

TEST_P(Poison, LeavesTheOtherPartitionsAlone) {
  Shop shop{{.partition_count = 4, .fence = GetParam()}, {.on_poison = OnPoison::stop}};
  shop.too_large = {1};
  for (int i = 0; i < 12; ++i) shop.append("order-" + std::to_string(i));
  shop.relay();

  const OutboxStatus status = shop.operations.status();
  EXPECT_EQ(status.stopped, 1);
  for (const PartitionStatus& partition : status.partitions) {
    EXPECT_EQ(partition.pending > 0, partition.stopped.has_value());
  }
}

}  // namespace
}  // namespace stela::poison_test
