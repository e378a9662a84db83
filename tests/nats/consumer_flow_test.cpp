// How much a consumer takes at once.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stela {
namespace {

using test::Ledger;
using test::OrderPlaced;

/// What the broker says of the consumer.
struct AtTheBroker {
  std::int64_t delivered = 0;
  std::int64_t redelivered = 0;
};

class LargePayloads : public ::testing::Test {
 protected:
  AtTheBroker look() {
    jsConsumerInfo* info = nullptr;
    if (js_GetConsumerInfo(&info, broker.context(), "SHOP", "billing", nullptr, nullptr) !=
        NATS_OK) {
      return {};
    }
    const AtTheBroker found{static_cast<std::int64_t>(info->Delivered.Consumer),
                            info->NumRedelivered};
    jsConsumerInfo_Destroy(info);
    return found;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::JetStream broker{server.url()};
  test::Shop shop{dir.file("shop.db"), server.url()};
  Ledger ledger{dir.file("billing.db")};
};

TEST_F(LargePayloads, AreTakenByBytesAndNoneIsDropped) {
  constexpr int orders = 80;
  constexpr int in_16_mib = 18;
  const std::string large(900'000, 'x');
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i), 100, large);
  shop.publish();
  nats::Consumer consumer{
      ledger.store,
      {.url = server.url(), .name = "billing", .stream = "SHOP", .batch_size = 1'000}};
  std::int64_t delivered_at_first = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (delivered_at_first > 0) return;
    test::eventually([&] { return look().delivered >= in_16_mib; });
    // As long as the broker has more to send, it does.
    std::int64_t before = 0;
    while (std::exchange(before, look().delivered) < look().delivered) {
    }
    delivered_at_first = look().delivered;
  });

  nats::ConsumerTick total;
  const bool handled = test::eventually([&] {
    total += consumer.poll();
    return total.handled + total.duplicates >= orders;
  });

  EXPECT_TRUE(handled);
  EXPECT_EQ(total, (nats::ConsumerTick{.handled = orders}));
  EXPECT_LE(delivered_at_first, in_16_mib + 1);
  EXPECT_EQ(look().redelivered, 0);
  EXPECT_EQ(look().delivered, orders);
}

}  // namespace
}  // namespace stela
