#include "outbox/shop.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace stela::bus_publisher_test {
namespace {

using test::Order;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// An application without a broker: a store, an outbox, a bus and a relay.
struct InProcess {
  void place(const std::string& name) {
    Order order = Order::place(Id<Order>::from(name), "ann", 100);
    orders.save(order);
  }
  RelayTick relay_now() {
    clock.advance(std::chrono::minutes{2});
    return relay.run_once();
  }

  test::TempDir dir = test::TempDir::in_memory();
  testing::ManualClock clock;
  Store store{sqlite::open(dir.file("shop.db"), {.clock = &clock})};
  Outbox outbox{store, {.fence = Fence::none}};
  Repository<Order> orders{store};
  EventBus bus{store, {}, EventBus::Feed::deliver};
  BusPublisher publisher{bus};
  Relay relay{outbox, publisher, {.max_attempts = 3}};
};

TEST(BusPublisher, CallsTheListenersWhenTheRelayRuns) {
  InProcess app;
  std::vector<std::string> heard;
  const auto placed = app.bus.on<test::OrderPlaced>([&](const Recorded<test::OrderPlaced>& e) {
    heard.push_back(e.stream().name() + ' ' + e->customer);
  });
  app.place("1");
  EXPECT_THAT(heard, IsEmpty()) << "only what the outbox says is delivered";

  EXPECT_EQ(app.relay_now().published, 1);
  app.relay_now();

  EXPECT_THAT(heard, ElementsAre("order-1 ann"));
}

TEST(BusPublisher, DeliversAgainUntilEveryListenerReturns) {
  InProcess app;
  int failures = 2;
  int first = 0;
  int second = 0;
  const auto a = app.bus.on_any([&](const StoredEvent&) { ++first; });
  const auto b = app.bus.on_any([&](const StoredEvent&) {
    if (failures-- > 0) throw std::runtime_error{"the printer is out of paper"};
    ++second;
  });
  app.place("1");

  EXPECT_EQ(app.relay_now().retried, 1);
  OutboxOperations operations{app.store};
  EXPECT_EQ(operations.show(GlobalSequence{1})->last_error, "the printer is out of paper");
  app.relay_now();
  EXPECT_EQ(app.relay_now().published, 1);

  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 1);
}

TEST(BusPublisher, ParksMessagesThatEveryListenerRefuses) {
  InProcess app;
  const auto listener = app.bus.on_any([](const StoredEvent& e) {
    if (e.stream.name() == "order-1") throw 7;
  });
  app.place("1");
  app.place("2");
  for (int i = 0; i < 3; ++i) app.relay_now();

  OutboxOperations operations{app.store};
  EXPECT_EQ(operations.status().parked, 1);
  EXPECT_EQ(operations.status().published, 1);
}

TEST(BusPublisher, ChargesNoMessageWithAShortageOfMemory) {
  InProcess app;
  bool is_short = true;
  const auto listener = app.bus.on_any([&](const StoredEvent&) {
    if (is_short) throw std::bad_alloc{};
  });
  app.place("1");
  for (int i = 0; i < 5; ++i) app.relay_now();
  OutboxOperations operations{app.store};
  EXPECT_EQ(operations.status().parked, 0);

  is_short = false;
  EXPECT_EQ(app.relay_now().published, 1);
}

TEST(BusPublisher, DeliversEventsThatAListenerAppends) {
  InProcess app;
  std::vector<std::string> heard;
  const auto ship = app.bus.on<test::OrderPlaced>([&](const Recorded<test::OrderPlaced>& e) {
    Order order = app.orders.load(Id<Order>::of(e.stream()));
    order.ship("dhl");
    app.orders.save(order);
  });
  const auto all = app.bus.on_any([&](const StoredEvent& e) { heard.push_back(e.type()); });
  app.place("1");
  app.relay_now();
  app.relay_now();

  EXPECT_THAT(heard, ElementsAre("order.placed", "order.shipped"));
}

TEST(BusPublisher, TakesUpWhereADeadProcessLeftOff) {
  InProcess app;
  app.place("1");
  std::vector<std::string> heard;
  EventBus bus{app.store, {}, EventBus::Feed::deliver};
  const auto listener = bus.on_any([&](const StoredEvent& e) { heard.push_back(e.stream.name()); });
  BusPublisher publisher{bus};
  Relay{app.outbox, publisher}.run_once();
  EXPECT_THAT(heard, ElementsAre("order-1"));
}

TEST(BusPublisher, CantKeepAFence) {
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  Outbox outbox{store};
  EventBus bus{store, {}, EventBus::Feed::deliver};
  BusPublisher publisher{bus};
  EXPECT_THAT(test::message_of<UsageError>([&] { Relay(outbox, publisher); }),
              HasSubstr("has the fence 'stream', which this publisher can't keep"));
}

}  // namespace
}  // namespace stela::bus_publisher_test
