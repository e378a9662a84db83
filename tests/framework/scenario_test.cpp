// The test kit: what it accepts, and what it says when an expectation doesn't hold.
#include "support/counters.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"

#include <stela/testing/manual_clock.hpp>
#include <stela/testing/scenario.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stela::testing::scenario_test {
namespace {

using test::message_of;
using test::Order;
using test::OrderNoted;
using test::OrderPlaced;
using test::OrderShipped;
using test::OrderState;
using ::testing::AllOf;
using ::testing::HasSubstr;

Scenario<Order> placed() {
  return given<Order>(OrderPlaced{"jane", 100});
}
void ship(Order& order) {
  order.ship("dhl");
}
template <class Expect>
std::string failure(Expect&& expect) {
  return message_of<ScenarioFailed>(std::forward<Expect>(expect));
}

TEST(Scenario, ComparesRecordedEvents) {
  placed().when(ship).then(OrderShipped{"dhl"});
  given<Order>()
      .when([] { return Order::place(Id<Order>::from("1"), "jane", 100); })
      .then(OrderPlaced{"jane", 100})
      .then_state([](const OrderState& state) { return state.total_cents == 100; });
  placed().when([](Order&) {}).then_nothing();
}

TEST(Scenario, ShowsBothListsWhenTheyDiffer) {
  EXPECT_THAT(failure([] { placed().when(ship).then(OrderShipped{"ups"}); }),
              AllOf(HasSubstr(R"(order.shipped v1 {"carrier":"ups"})"),
                    HasSubstr(R"(order.shipped v1 {"carrier":"dhl"})")));
  EXPECT_THAT(failure([] { placed().when(ship).then(OrderShipped{"dhl"}, OrderNoted{"x"}); }),
              HasSubstr("order.noted"));
  EXPECT_THAT(failure([] { placed().when(ship).then_nothing(); }), HasSubstr("(none)"));
}

TEST(Scenario, ComparesExceptions) {
  given<Order>().when(ship).throws<std::domain_error>("only a placed order ships");
  given<Order>().when(ship).throws<std::exception>();
}

TEST(Scenario, NamesTheActualException) {
  EXPECT_THAT(failure([] { placed().when(ship).throws<std::domain_error>(); }),
              HasSubstr("nothing was thrown"));
  EXPECT_THAT(failure([] { given<Order>().when(ship).throws<UsageError>(); }),
              HasSubstr("only a placed order ships"));
  EXPECT_THAT(failure([] { given<Order>().when(ship).throws<std::domain_error>("paid"); }),
              AllOf(HasSubstr("'paid'"), HasSubstr("only a placed order ships")));
  EXPECT_THAT(failure([] { given<Order>().when(ship).then(OrderShipped{"dhl"}); }),
              AllOf(HasSubstr("expected no exception"), HasSubstr("only a placed order ships")));
  EXPECT_THAT(failure([] { placed().when([](Order&) { throw 7; }).throws<std::exception>(); }),
              HasSubstr("isn't a std::exception"));
}

TEST(Scenario, ComparesTheState) {
  placed().when(ship).then_state({OrderState::Stage::shipped, 100, 0});
  given<test::DemandCounter>(test::Added{2}, test::Added{3})
      .when([](test::DemandCounter& counter) { counter.add(4); })
      .then_state({.sum = 9})
      .then_state([](const auto& state) { EXPECT_EQ(state.applied, 3); });
}

TEST(Scenario, ShowsBothStatesWhenTheyDiffer) {
  EXPECT_THAT(failure([] {
                given<test::DemandCounter>(test::Added{2})
                    .when([](test::DemandCounter&) {})
                    .then_state({.sum = 3});
              }),
              AllOf(HasSubstr(R"({"sum":3})"), HasSubstr(R"({"sum":2})")));
  EXPECT_THAT(failure([] { placed().when(ship).then_state(OrderState{}); }),
              HasSubstr("state isn't as expected"));
  EXPECT_THAT(
      failure([] { placed().when(ship).then_state([](const OrderState&) { return false; }); }),
      HasSubstr("state isn't as expected"));
}

TEST(Scenario, TakesAHistoryThatIsMadeAtRunTime) {
  std::vector<Order::Change> history{OrderPlaced{"jane", 100}};
  for (int i = 0; i < 3; ++i) history.emplace_back(OrderNoted{std::to_string(i)});

  given<Order>(history, OrderShipped{"dhl"})
      .when([](Order& order) { order.note("4"); })
      .then(OrderNoted{"4"})
      .then_state({OrderState::Stage::shipped, 100, 4});
  given<Order>(OrderPlaced{"jane", 1}, std::vector<OrderNoted>(2)).when([](Order& order) {
    EXPECT_EQ(order.version(), StreamVersion{3});
  });
}

TEST(Scenario, GivesRecordedEventsThatOutliveIt) {
  int count = 0;
  for (const auto& change : placed().when(ship).then(OrderShipped{"dhl"}).recorded()) {
    count += std::get<OrderShipped>(change).carrier == "dhl" ? 1 : 0;
  }
  EXPECT_EQ(count, 1);
  const auto& shipped = placed().when(ship).recorded<OrderShipped>();
  const auto& order = placed().when(ship).aggregate();
  EXPECT_EQ(shipped.carrier, "dhl");
  EXPECT_EQ(order.state().stage, OrderState::Stage::shipped);
}

TEST(Scenario, GivesAccessToRecordedEvents) {
  auto outcome = placed().when([](Order& order) {
    order.note("1");
    order.note("2");
    order.ship("dhl");
  });

  EXPECT_EQ(outcome.recorded().size(), 3U);
  EXPECT_EQ(outcome.recorded<OrderShipped>().carrier, "dhl");
  EXPECT_EQ(outcome.aggregate().state().notes, 2);
  EXPECT_THAT(failure([&] { (void)outcome.recorded<OrderNoted>(); }),
              HasSubstr("expected one event 'order.noted', but 2 were recorded"));
  EXPECT_THAT(failure([&] { (void)outcome.recorded<OrderPlaced>(); }), HasSubstr("but 0 were"));
  auto refused = given<Order>().when(ship);
  EXPECT_THAT(failure([&] { (void)refused.recorded(); }), HasSubstr("only a placed order ships"));
  EXPECT_THAT(failure([&] { (void)refused.aggregate(); }), HasSubstr("only a placed order ships"));
}

TEST(ManualClock, StandsStillUntilItIsAdvanced) {
  using namespace std::chrono_literals;
  ManualClock clock;
  const auto steady = clock.steady_now();

  EXPECT_EQ(clock.now(), ManualClock::start);
  clock.advance(90s);
  EXPECT_EQ(clock.now(), ManualClock::start + 90s);
  EXPECT_EQ(clock.steady_now(), steady + 90s);
  clock.jump_to(ManualClock::start - 1h);
  EXPECT_EQ(clock.now(), ManualClock::start - 1h);
  EXPECT_EQ(clock.steady_now(), steady + 90s);
}

}  // namespace
}  // namespace stela::testing::scenario_test
