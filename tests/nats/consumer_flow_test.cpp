// How much a consumer takes at once, and what it leaves to others.
#include "nats/shop_at_broker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace stela::consumer_flow_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;

class LargePayloads : public ::testing::Test {
 protected:
  /// How many messages the broker has sent to the one consumer that reads.
  std::int64_t delivered() {
    jsConsumerInfoList* list = nullptr;
    if (js_Consumers(&list, broker.context(), "SHOP", nullptr, nullptr) != NATS_OK) return 0;
    std::int64_t count = 0;
    for (int i = 0; i < list->Count; ++i) {
      count += static_cast<std::int64_t>(list->List[i]->Delivered.Consumer);
    }
    jsConsumerInfoList_Destroy(list);
    return count;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::JetStream broker{server.url()};
  test::Shop shop{dir.file("shop.db"), server.url()};
  Ledger ledger{dir.file("billing.db")};
};

TEST_F(LargePayloads, AreRequestedByBytesAndNeverDropped) {
  constexpr int orders = 80;
  constexpr int in_16_mib = 18;
  const std::string large(900'000, 'x');
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i), 100, large);
  shop.publish();
  nats::Consumer consumer{ledger.store,
                          {.url = server.url(),
                           .name = "billing",
                           .stream = "SHOP",
                           .batch_size = 1'000,
                           .prefetch_bytes = 16 * 1024 * 1024}};
  std::int64_t handled = 0;
  std::int64_t delivered_at_first = 0;
  std::int64_t most_unhandled = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    // As long as the broker has more to send, it does.
    std::int64_t sent = -1;
    while (std::exchange(sent, delivered()) < delivered()) {
    }
    if (handled == 0) delivered_at_first = sent;
    most_unhandled = std::max(most_unhandled, sent - handled++);
  });

  nats::ConsumerTick total;
  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return total.handled + total.duplicates >= orders;
  }));

  EXPECT_EQ(total, (nats::ConsumerTick{.handled = orders}));
  EXPECT_LE(delivered_at_first, in_16_mib + 1);
  // Those of a request, which are being handled, and those of the next one.
  EXPECT_LE(most_unhandled, 2 * in_16_mib);
  EXPECT_GE(most_unhandled, in_16_mib) << "the line is fast";
  EXPECT_EQ(delivered(), orders);
}

class Polling : public test::ShopAtBroker {
 protected:
  Ledger ledger{dir.file("billing.db")};
};

TEST_F(Polling, HandlesAllMessagesOfAFullBatch) {
  auto with = defaults();
  with.idle_wait = 10s;
  with.batch_size = 3;
  for (int i = 1; i <= 8; ++i) shop.place(std::to_string(i));
  shop.publish();
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);

  EXPECT_EQ(consumer.run_once().handled, 8);
}

}  // namespace
}  // namespace stela::consumer_flow_test
