// How much a consumer takes at once, and what it leaves to others.
#include "nats/shop_at_broker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace stela::consumer_flow_test {
namespace {

using namespace std::chrono_literals;
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

TEST_F(LargePayloads, AreRequestedByBytesAndNeverDropped) {
  constexpr int orders = 80;
  constexpr int in_16_mib = 18;
  const std::string large(900'000, 'x');
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i), 100, large);
  shop.publish();
  nats::Consumer consumer{
      ledger.store,
      {.url = server.url(), .name = "billing", .stream = "SHOP", .batch_size = 1'000}};
  std::int64_t handled = 0;
  std::int64_t delivered_at_first = 0;
  std::int64_t most_unhandled = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    // As long as the broker has more to send, it does.
    std::int64_t delivered = -1;
    while (std::exchange(delivered, look().delivered) < look().delivered) {
    }
    if (handled == 0) delivered_at_first = delivered;
    most_unhandled = std::max(most_unhandled, delivered - handled++);
  });

  nats::ConsumerTick total;
  EXPECT_TRUE(test::eventually([&] {
    total += consumer.poll();
    return total.handled + total.duplicates >= orders;
  }));

  EXPECT_EQ(total, (nats::ConsumerTick{.handled = orders}));
  EXPECT_LE(delivered_at_first, in_16_mib + 1);
  // Those of a request, which are being handled, and those of the next one.
  EXPECT_LE(most_unhandled, 2 * in_16_mib);
  EXPECT_GE(most_unhandled, in_16_mib) << "the line is fast";
  EXPECT_EQ(look().redelivered, 0);
  EXPECT_EQ(look().delivered, orders);
}

/// What is lost at the broker comes again too late for these tests.
class Polling : public test::ShopAtBroker {
 protected:
  nats::ConsumerOptions options() const {
    auto with = defaults();
    with.ack_wait = 10min;
    with.idle_wait = 10s;
    return with;
  }
  std::unique_ptr<nats::Consumer> make_consumer(const nats::ConsumerOptions& with) {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
    consumer->on<OrderPlaced>(Ledger::note<OrderPlaced>);
    return consumer;
  }
  void place(int first, int last) {
    for (int i = first; i <= last; ++i) shop.place(std::to_string(i));
    shop.publish();
  }
  /// Polls until so many orders are handled.
  bool reaches(nats::Consumer& consumer, std::size_t orders) {
    return test::eventually([&] {
      consumer.poll();
      return ledger.lines().size() == orders;
    });
  }

  Ledger ledger{dir.file("billing.db")};
};

TEST_F(Polling, HandlesAllMessagesOfAFullBatch) {
  auto with = options();
  with.batch_size = 3;
  place(1, 8);

  EXPECT_EQ(make_consumer(with)->poll().handled, 8);
}

TEST_F(Polling, LeavesNothingThatKeepsAMessageFromComingAgain) {
  const auto consumer = make_consumer(options());
  shop.publish();
  consumer->poll();
  place(1, 1);
  broker.take("SHOP", "billing", 1);
  place(2, 3);
  ASSERT_TRUE(reaches(*consumer, 2));

  broker.give_back();

  EXPECT_TRUE(reaches(*consumer, 3));
}

}  // namespace
}  // namespace stela::consumer_flow_test
