#include "order.hpp"
#include "stock.hpp"

#include <stela/testing/scenario.hpp>

#include <gtest/gtest.h>

namespace orders::orders_domain_test {
namespace {

using stela::testing::given;

const OrderPlaced ada_orders{"1", "lamp", 2, {4200, "EUR"}};
const CustomerState ada{true, "Ada", "Ferry Road 4"};
const OrderShipped shipped_to_ada{CustomerId::from("1"), "Ada", "Ferry Road 4", "lamp", 2, "dhl"};

TEST(Customers, AreRegisteredOnce) {
  const auto one = CustomerId::from("1");
  const CustomerRegistered registered{one, "Ada", "Ferry Road 4"};
  given<Customer>()
      .when([&](Customer& customer) { customer.be_registered(one, "Ada", "Ferry Road 4"); })
      .then(registered);
  given<Customer>(registered)
      .when([&](Customer& customer) { customer.be_registered(one, "Grace", "elsewhere"); })
      .throws<std::domain_error>("already");
}

TEST(Orders, ArePlacedOnce) {
  given<Order>().when([](Order& order) { order.place(ada_orders); }).then(ada_orders);
  given<Order>(ada_orders)
      .when([](Order& order) { order.place(ada_orders); })
      .throws<std::domain_error>("already");
}

TEST(Orders, AreOfSomethingAndCostSomething) {
  given<Order>()
      .when([](Order& order) {
        order.place({"1", "lamp", 0, {4200, "EUR"}});
      })
      .throws<std::domain_error>("one piece");
  given<Order>()
      .when([](Order& order) {
        order.place({"1", "lamp", 1, {0, "EUR"}});
      })
      .throws<std::domain_error>("costs something");
}

TEST(Orders, ShipWhenTheyArePaid) {
  given<Order>(ada_orders, OrderPaid{"p-1"})
      .when([](Order& order) { order.ship(ada, "dhl"); })
      .then(shipped_to_ada)
      .then_state(
          [](const OrderState& state) { return state.stage == OrderState::Stage::shipped; });
  given<Order>(ada_orders)
      .when([](Order& order) { order.ship(ada, "dhl"); })
      .throws<std::domain_error>("only a paid order ships");
}

TEST(Orders, AreCancelledUntilTheyShip) {
  given<Order>(ada_orders, OrderPaid{"p-1"})
      .when([](Order& order) { order.cancel("changed her mind"); })
      .then(OrderCancelled{"changed her mind"});
  given<Order>(ada_orders, OrderPaid{"p-1"}, shipped_to_ada)
      .when([](Order& order) { order.cancel("too late"); })
      .throws<std::domain_error>("hasn't shipped");
}

TEST(Orders, OfTheFirstVersionWereInEuros) {
  EXPECT_EQ(OrderPlaced::upcast({"Grace", "desk", 1, 15'990}).price, (Money{15'990, "EUR"}));
}

TEST(Stock, IsKeptForAnOrder) {
  given<Stock>(StockReceived{3})
      .when([](Stock& stock) { stock.reserve("7", 2); })
      .then(StockReserved{"7", 2})
      .then_state([](const StockState& state) { return state.available == 1; });
}

TEST(Stock, CannotBePromisedTwice) {
  given<Stock>(StockReceived{3}, StockReserved{"7", 2})
      .when([](Stock& stock) { stock.reserve("8", 2); })
      .throws<std::domain_error>("only 1 pieces of 'test' are available");
}

TEST(Stock, ComesBackWhenTheOrderIsCancelled) {
  given<Stock>(StockReceived{3}, StockReserved{"7", 2})
      .when([](Stock& stock) { stock.release("7"); })
      .then(StockReleased{"7", 2})
      .then_state(StockState{3, {}});
}

TEST(Stock, LeavesWithTheOrder) {
  given<Stock>(StockReceived{3}, StockReserved{"7", 2})
      .when([](Stock& stock) { stock.take("7"); })
      .then(StockTaken{"7", 2})
      .then_state(StockState{1, {}});
  given<Stock>(StockReceived{3})
      .when([](Stock& stock) { stock.take("7"); })
      .throws<std::domain_error>("nothing is reserved");
}

}  // namespace
}  // namespace orders::orders_domain_test
