// What a relay sends again because nothing is parked before it any more: in bounded steps.
#include "outbox/shop.hpp"
#include "tables/relay_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::followers_test {
namespace {

using test::Shop;
using ::testing::ElementsAre;

constexpr PartitionId all{0};

TEST(Followers, OfAMessageThatArrivedAllTheSameAreSentInBoundedSteps) {
  Shop shop;
  shop.too_large = {1};
  for (int i = 0; i < 1'203; ++i) shop.append("order-1");
  for (int i = 0; i < 5; ++i) shop.relay();
  ASSERT_EQ(shop.totals(), "1203 parked");
  shop.lose_relay();
  outbox::RelayStore store{shop.store, true};
  const auto standing = store.acquire(all, "w1", std::chrono::seconds{15});
  ASSERT_TRUE(standing);
  const auto publish = [&](std::int64_t sequence, std::int64_t redelivery) {
    const GlobalSequence one{sequence};
    const relay::Advance advance{
        .published = {{.first = one, .last = one, .count = 1, .redelivery = redelivery}}};
    EXPECT_TRUE(store.advance({all, "w1", standing->epoch, standing->run}, advance, false));
  };

  publish(1, 0);
  EXPECT_EQ(shop.totals(), "500 to be sent again, 702 parked, 1 published");
  for (std::int64_t i = 2; i <= 501; ++i) publish(i, i - 1);
  EXPECT_EQ(shop.totals(), "500 to be sent again, 202 parked, 501 published");
  for (std::int64_t i = 502; i <= 1'001; ++i) publish(i, i - 1);
  EXPECT_EQ(shop.totals(), "202 to be sent again, 1001 published");
  EXPECT_THAT(shop.raw().rows("SELECT min(sequence), max(sequence) FROM outbox_redeliveries"),
              ElementsAre("1002|1203"));
}

/// A relay that skips poison leaves nothing waiting for it.
TEST(Followers, OfASkippedMessageAreSent) {
  Shop shop{{}, {.on_poison = OnPoison::skip}};
  shop.append_all({"order-1", "order-1"});
  shop.raw().run(
      "INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, "
      "requested_at) SELECT partition, 1, sequence, stream, 'retry', 0 FROM outbox_messages "
      "WHERE sequence = 1;"
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, sequence, partition, 0, 0, 'behind', '' FROM outbox_messages "
      "WHERE sequence = 2;"
      "DELETE FROM outbox_messages;"
      "UPDATE outbox_partitions SET removed = removed + 2");
  shop.too_large = {1};

  for (int i = 0; i < 2; ++i) shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2r2");
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
}

}  // namespace
}  // namespace stela::followers_test
