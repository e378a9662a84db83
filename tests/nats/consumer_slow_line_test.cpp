// Consumers at the end of a slow line.
#include "nats/middleman.hpp"
#include "nats/shop_at_broker.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/outbox/operations.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace stela::consumer_slow_line_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;

class FarConsumer : public test::ShopAtBroker {
 protected:
  nats::ConsumerOptions options() const {
    auto with = defaults();
    with.url = proxy.url();
    with.api.prefix = test::Middleman::prefix;
    return with;
  }
  /// A consumer runs meanwhile.
  void consume(const std::function<void()>& test) {
    nats::Consumer consumer{ledger.store, options()};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer.on_tick([&](const nats::ConsumerTick& tick) {
      if (tick.broker.state == BrokerState::down) is_down = true;
    });
    const std::jthread running{[&](const std::stop_token& stop) { consumer.run(stop); }};
    test();
  }
  bool handles(std::size_t orders) {
    return test::eventually([&] { return ledger.lines().size() == orders; });
  }

  test::TcpProxy proxy{server.port()};
  /// Sees the requests.
  test::Middleman api{server.url()};
  std::atomic<bool> is_down{false};
  Ledger ledger{dir.file("billing.db")};
};

TEST_F(FarConsumer, OfLargePayloadsWaitsForWhatTheLineCarries) {
  constexpr int orders = 3;
  for (int i = 0; i < orders; ++i) {
    shop.place(std::to_string(i), 100, std::string(900'000, 'x'));
  }
  shop.publish();
  proxy.limit(200'000);

  consume([&] { EXPECT_TRUE(handles(orders)); });

  EXPECT_FALSE(is_down);
}

TEST_F(FarConsumer, AsksForAnOlderStreamBehindWhatTheLineCarries) {
  shop.place("old");
  shop.publish();
  auto with = options();
  {
    nats::Consumer consumer{ledger.store, with};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    EXPECT_TRUE(test::eventually([&] { return consumer.run_once().handled == 1; }));
  }
  OutboxOperations{shop.store}.resize(2);
  constexpr int orders = 30;
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i), 100, std::string(40'000, 'x'));
  EXPECT_TRUE(test::eventually([&] {
    shop.publish();
    return OutboxOperations{shop.store}.status().pending == 0;
  }));
  const auto sent = broker.drain("SHOP_p00").size();
  ASSERT_GT(sent, 10U) << "some 400 kB: they take two seconds, and an answer may take half of one";
  with.stream = "SHOP_p00";
  with.connect_timeout = 500ms;
  proxy.limit(200'000);

  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  const std::jthread running{[&](const std::stop_token& stop) { consumer.run(stop); }};
  EXPECT_TRUE(test::eventually([&] { return ledger.lines().size() == sent + 1; }, 40s));
}

TEST_F(FarConsumer, RequestsManyBatchesAtOnce) {
  constexpr int orders = 60;
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i));
  shop.publish();
  auto with = options();
  with.batch_size = 5;
  with.idle_wait = 10s;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);

  EXPECT_TRUE(test::eventually([&] {
    consumer.run_once();
    return ledger.lines().size() == orders;
  }));

  EXPECT_EQ(api.requests().size(), 1U);
}

TEST_F(FarConsumer, LeavesALineThatNothingPassesAnyMore) {
  shop.place("1");
  shop.publish();

  consume([&] {
    EXPECT_TRUE(handles(1));
    proxy.half_open();
    EXPECT_TRUE(test::eventually([&] { return is_down.load(); }, 25s))
        << "nats.c's own pings need 30 s";
  });
}

}  // namespace
}  // namespace stela::consumer_slow_line_test
