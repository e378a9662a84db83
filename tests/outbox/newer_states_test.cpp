#include "outbox/shop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::newer_states_test {
namespace {

using test::Shop;
using ::testing::HasSubstr;

TEST(NewerStates, OfAPartitionAreShownWithTheirWord) {
  Shop shop;
  shop.raw().run("UPDATE outbox_partitions SET stopped = 'frozen', stopped_detail = 'by a crane'");

  const OutboxStatus status = shop.operations.status();

  EXPECT_EQ(status.stopped, 1);
  EXPECT_EQ(status.partitions.front().stopped, StopReason::unrecognized);
  EXPECT_EQ(status.partitions.front().stopped_detail, "frozen: by a crane");
  EXPECT_THAT(test::message_of<UsageError>([&] { shop.operations.resume(PartitionId{}); }),
              HasSubstr("is stopped by frozen"));
}

TEST(NewerStates, OfAMessageAreShownAsUnrecognized) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.operations.discard({.sequences = {GlobalSequence{1}}});
  shop.raw().run("UPDATE outbox_discarded SET reason = 'forgotten'");

  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->reason, SetAsideReason::unrecognized);
}

TEST(NewerStates, OfAFailureAreShownAsOther) {
  Shop shop;
  shop.too_large = {1};
  shop.append("order-1");
  shop.relay();
  shop.raw().run("UPDATE outbox_parked SET failure_class = 'haunted'");

  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->failure, FailureClass::other);
}

TEST(States, KeepTheirWordsInTheDatabase) {
  for (const FailureClass failure :
       {FailureClass::stream_full, FailureClass::stream_missing, FailureClass::stream_sealed,
        FailureClass::stream_settings, FailureClass::subject, FailureClass::permission,
        FailureClass::too_large, FailureClass::no_answer, FailureClass::rejected,
        FailureClass::other}) {
    EXPECT_EQ(parse_failure_class(to_string(failure)), failure) << to_string(failure);
  }
  for (const StopReason reason :
       {StopReason::poison, StopReason::foreign_writer, StopReason::broker_lost,
        StopReason::store_went_back, StopReason::unreadable, StopReason::damaged,
        StopReason::missing, StopReason::unrecognized}) {
    EXPECT_EQ(parse_stop_reason(to_string(reason)), reason);
  }
  for (const SetAsideReason reason :
       {SetAsideReason::refused, SetAsideReason::attempts, SetAsideReason::behind,
        SetAsideReason::discarded, SetAsideReason::skipped, SetAsideReason::unrecognized}) {
    EXPECT_EQ(parse_set_aside_reason(to_string(reason)), reason);
  }
  EXPECT_EQ(to_string(StopReason::missing), "unknown");
}

TEST(States, OfABrokerAreReadFromTheirWords) {
  for (const BrokerStatus& status :
       {BrokerStatus{BrokerState::connecting}, BrokerStatus{BrokerState::connected},
        BrokerStatus{BrokerState::down, "connecting to nats://shop:4222: refused"},
        BrokerStatus{BrokerState::misconfigured, "there is no stream"}}) {
    EXPECT_EQ(parse_broker_status(to_string(status)), status);
  }
  EXPECT_EQ(to_string(BrokerStatus{BrokerState::down, "no answer"}), "down: no answer");
  EXPECT_EQ(parse_broker_status("asleep"), (BrokerStatus{BrokerState::down, "asleep"}));
}

}  // namespace
}  // namespace stela::newer_states_test
