#include "order.hpp"

#include <stela/testing/scenario.hpp>

#include <gtest/gtest.h>

namespace orders {
namespace {

using stela::testing::given;

TEST(Orders, ArePlacedWithAPrice) {
  const auto id = stela::Id<Order>::from("7");

  given<Order>().when([&] { return Order::place(id, "Ada", 100); }).then(OrderPlaced{"Ada", 100});
  given<Order>()
      .when([&] { return Order::place(id, "Ada", 0); })
      .throws<std::domain_error>("costs something");
}

TEST(Orders, ShipOnce) {
  given<Order>(OrderPlaced{"Ada", 100})
      .when([](Order& order) { order.ship("dhl"); })
      .then(OrderShipped{"dhl"})
      .then_state(
          [](const OrderState& state) { return state.stage == OrderState::Stage::shipped; });
  given<Order>(OrderPlaced{"Ada", 100}, OrderShipped{"dhl"})
      .when([](Order& order) { order.ship("ups"); })
      .throws<std::domain_error>("only a placed order ships");
}

TEST(Orders, DoNotShipBeforeTheyArePlaced) {
  given<Order>()
      .when([](Order& order) { order.ship("dhl"); })
      .throws<std::domain_error>("only a placed order ships");
}

TEST(Orders, CanBeNotedAtAnyTime) {
  given<Order>(OrderPlaced{"Ada", 100}, OrderShipped{"dhl"})
      .when([](Order& order) { order.note("left at the door"); })
      .then(OrderNoted{"left at the door"});
}

}  // namespace
}  // namespace orders
