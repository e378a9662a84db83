// The test kit for projectors and reactions: what it accepts, and what it says otherwise.
#include "projections/models.hpp"

#include <stela/projections_testing/projector_scenario.hpp>
#include <stela/projections_testing/reaction_scenario.hpp>

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
using test::Totals;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class Expect>
std::string failure(Expect&& expect) {
  return message_of<ScenarioFailed>(std::forward<Expect>(expect));
}

constexpr std::string_view all_orders = "SELECT id, cents, carrier FROM orders ORDER BY id";

TEST(ProjectorScenario, ComparesRows) {
  ProjectorScenario{Totals<1>{}}
      .then(all_orders, {})
      .given("order-1", OrderPlaced{"jane", 100}, OrderShipped{"dhl"})
      .given(Id<Order>::from("2"), OrderPlaced{"joe", 7})
      .then(all_orders, {"1 | 100 | dhl", "2 | 7 | NULL"})
      .rebuild()
      .then(all_orders, {"1 | 100 | dhl", "2 | 7 | NULL"});
}

TEST(ProjectorScenario, TakesHistoriesThatAreMadeAtRunTime) {
  std::vector<Order::Change> history{OrderPlaced{"jane", 100}};
  history.emplace_back(OrderNoted{"a"});

  ProjectorScenario{Totals<1>{}}
      .given("order-1", history, std::vector<OrderNoted>(2))
      .then("SELECT id, notes FROM orders", {"1 | 3"});
}

TEST(ProjectorScenario, ShowsBothListsWhenTheyDiffer) {
  ProjectorScenario scenario{Totals<1>{}};
  scenario.given("order-1", OrderPlaced{"jane", 100});

  EXPECT_THAT(failure([&] { scenario.then(all_orders, {"1 | 99 | NULL"}); }),
              AllOf(HasSubstr("1 | 99 | NULL"), HasSubstr("1 | 100 | NULL")));
  EXPECT_THAT(failure([&] { scenario.then(all_orders, {}); }), HasSubstr("(none)"));
  scenario.then("SELECT x'00af', 0.5", {"x'00af' | 0.5"});
}

TEST(ProjectorScenario, ComparesAHandlersException) {
  ProjectorScenario scenario{Totals<1>{[](ReadModel& model, const StoredEvent& event) {
    if (event.type() == "order.noted") throw std::domain_error{"no notes"};
    if (event.type() == "order.shipped") {
      model.execute("INSERT INTO {orders} SELECT * FROM {orders}");
    }
  }}};
  scenario.given("order-1", OrderPlaced{"jane", 100});

  scenario.refuses<UniquenessViolated>("orders", "order-1", OrderShipped{"dhl"})
      .refuses<std::domain_error>("no notes", "order-1", OrderNoted{"a"})
      .then(all_orders, {"1 | 100 | NULL"});
  EXPECT_THAT(failure([&] {
                scenario.refuses<std::domain_error>("", "order-2", OrderPlaced{"joe", 1});
              }),
              HasSubstr("nothing was thrown"));
  EXPECT_THROW(scenario.given("order-1", OrderNoted{"a"}), std::domain_error);
}

TEST(ProjectorScenario, RecordsEventsAtTheTimeOfItsClock) {
  Timestamp seen{};
  ProjectorScenario scenario{
      Totals<1>{[&](ReadModel&, const StoredEvent& event) { seen = event.recorded_at; }}};
  scenario.clock().advance(std::chrono::hours{1});
  scenario.given("order-1", OrderPlaced{"jane", 100});

  EXPECT_EQ(seen, ManualClock::start + std::chrono::hours{1});
}

/// Ships what is placed with the carrier of its customer, unless the customer is unknown.
class Shipping {
 public:
  static constexpr ReactionType reaction_type{"shipping"};
  using Events = EventSet<OrderPlaced, OrderNoted>;

  void react(UnitOfWork& unit, const Recorded<OrderPlaced>& e) {
    if (e->customer.empty()) throw std::domain_error{"for whom?"};
    unit.load(Id<Order>::of(e.stream())).ship("dhl");
  }
  void react(UnitOfWork& unit, const Recorded<OrderNoted>& e) {
    if (e->text != "copy") return;
    const auto copy = Id<Order>::from(std::string{e.stream().key()} + "-copy");
    unit.add(Order::place(copy, "jane", 1));
    EXPECT_EQ(current_context().causation_id, e.id());
  }
};

TEST(ReactionScenario, ComparesRecordedEvents) {
  ReactionScenario{Shipping{}}
      .when("order-1", OrderPlaced{"jane", 100})
      .then(on("order-1", OrderShipped{"dhl"}));
  ReactionScenario{Shipping{}}
      .given("order-1", OrderPlaced{"jane", 100}, OrderNoted{"copy"})
      .when("order-1", OrderNoted{"copy"})
      .then(on("order-1-copy", OrderPlaced{"jane", 1}));
  ReactionScenario{Shipping{}}
      .given("order-1", OrderPlaced{"jane", 100})
      .when("order-1", OrderNoted{"x"})
      .then_nothing();
}

struct CountedV1 {
  static constexpr EventType event_type{"order.counted", 1, local};
  int number = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number));
  }
};
/// Still recorded as the version before.
struct Counted {
  static constexpr EventType event_type{"order.counted", 2, local};
  using Supersedes = CountedV1;
  static Counted upcast(CountedV1 old) { return {old.number, "all"}; }
  static CountedV1 record_as(const Counted& counted) { return {counted.number}; }
  int number = 0;
  std::string of;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number), CEREAL_NVP(of));
  }
};
class Counting {
 public:
  static constexpr ReactionType reaction_type{"counting"};
  using Events = EventSet<OrderPlaced>;
  void react(UnitOfWork& unit, const Recorded<OrderPlaced>&) {
    unit.append(StreamId::parse("count-1"), ExpectedVersion::any(), Counted{1, "all"});
  }
};

TEST(ReactionScenario, ExpectsEventsThatAreRecordedAsTheVersionBefore) {
  ReactionScenario{Counting{}}
      .when("order-1", OrderPlaced{"jane", 100})
      .then(on("count-1", Counted{1, "all"}));
}

TEST(ReactionScenario, ComparesExceptions) {
  ReactionScenario{Shipping{}}
      .when("order-1", OrderPlaced{"", 100})
      .throws<std::domain_error>("for whom");
  EXPECT_THAT(failure([] {
                ReactionScenario{Shipping{}}.when("order-1", OrderPlaced{"", 1}).then_nothing();
              }),
              HasSubstr("for whom?"));
}

TEST(ReactionScenario, ShowsBothListsWhenTheyDiffer) {
  EXPECT_THAT(failure([] {
                ReactionScenario{Shipping{}}
                    .when("order-1", OrderPlaced{"jane", 100})
                    .then(on("order-1", OrderShipped{"ups"}));
              }),
              AllOf(HasSubstr(R"(order-1: order.shipped v1 {"carrier":"ups"})"),
                    HasSubstr(R"(order-1: order.shipped v1 {"carrier":"dhl"})")));
}

}  // namespace
}  // namespace stela::testing::scenario_test
