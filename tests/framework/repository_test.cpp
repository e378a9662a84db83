#include "support/histories.hpp"
#include "support/orders.hpp"

#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace stela::repository_test {
namespace {

using test::lines;
using test::message_of;
using test::Order;
using test::OrderState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

class RepositoryTest : public ::testing::Test {
 protected:
  /// Versions 1 to 4, an hour apart, with a note of another order between 2 and 3.
  void keep_a_history() {
    Order order = Order::place(id, "jane", 100);
    orders.save(order);
    clock.advance(1h);
    order.note("first");
    orders.save(order);
    Order other = Order::place(Id<Order>::from("2"), "joe", 5);
    orders.save(other);
    clock.advance(1h);
    order.note("second");
    orders.save(order);
    clock.advance(1h);
    order.ship("dhl");
    orders.save(order);
  }

  const Id<Order> id = Id<Order>::from("1");
  testing::ManualClock clock;
  testing::MemoryStore store{{.clock = &clock}};
  Repository<Order> orders{store};
};

TEST_F(RepositoryTest, LoadsASavedAggregate) {
  Order order = Order::place(id, "jane", 100);
  order.note("by phone");
  const AppendResult saved = orders.save(order);

  EXPECT_EQ(saved.last, GlobalSequence{2});
  EXPECT_EQ(order.version(), StreamVersion{2});
  EXPECT_THAT(order.changes(), IsEmpty());
  const Order loaded = orders.load(id);
  EXPECT_EQ(loaded.version(), StreamVersion{2});
  EXPECT_EQ(loaded.state(), order.state());
}

TEST_F(RepositoryTest, SavesASavedAggregateAgain) {
  Order order = Order::place(id, "jane", 100);
  orders.save(order);
  order.ship("dhl");
  orders.save(order);

  EXPECT_EQ(orders.load(id).state().stage, OrderState::Stage::shipped);
}

TEST_F(RepositoryTest, FindsNothingWhereThereAreNoEvents) {
  EXPECT_FALSE(orders.find(id));
  EXPECT_THAT(message_of<AggregateNotFound>([&] { orders.load(id); }), HasSubstr("'order-1'"));
}

TEST_F(RepositoryTest, WritesNothingWhereNothingChanged) {
  Order order = Order::place(id, "jane", 100);
  orders.save(order);
  const AppendResult again = orders.save(order);

  EXPECT_THAT(again.versions, ElementsAre(StreamVersion{1}));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(RepositoryTest, TellsTheLoserOfARaceAndLeavesItsAggregateAsItWas) {
  keep_a_history();
  Order winner = orders.load(id);
  Order loser = orders.load(id);
  winner.note("won");
  orders.save(winner);
  loser.note("lost");

  EXPECT_THAT(message_of<ConcurrencyConflict>([&] { orders.save(loser); }),
              AllOf(HasSubstr("order-1"), HasSubstr("4"), HasSubstr("5")));
  EXPECT_EQ(loser.version(), StreamVersion{4});
  EXPECT_THAT(loser.changes(), SizeIs(1));
}

TEST_F(RepositoryTest, TellsTheLoserOfTheFirstEvent) {
  Order winner = Order::place(id, "jane", 100);
  Order loser = Order::place(id, "joe", 200);
  orders.save(winner);

  EXPECT_THROW(orders.save(loser), ConcurrencyConflict);
  EXPECT_EQ(orders.load(id).state().total_cents, 100);
}

TEST_F(RepositoryTest, LooksBackToAVersion) {
  keep_a_history();

  EXPECT_EQ(orders.load(id, at_version(StreamVersion{1})).state().notes, 0);
  EXPECT_EQ(orders.load(id, at_version(StreamVersion{3})).state().notes, 2);
  EXPECT_EQ(orders.load(id, at_version(StreamVersion{9})).version(), StreamVersion{4});
  EXPECT_FALSE(orders.find(id, at_version(StreamVersion{0})));
}

TEST_F(RepositoryTest, LooksBackToASequence) {
  keep_a_history();

  EXPECT_EQ(orders.load(id, at_sequence(GlobalSequence{3})).version(), StreamVersion{2});
  EXPECT_EQ(orders.load(id, at_sequence(GlobalSequence{4})).version(), StreamVersion{3});
  EXPECT_FALSE(orders.find(Id<Order>::from("2"), at_sequence(GlobalSequence{2})));
}

TEST_F(RepositoryTest, LooksBackToATime) {
  keep_a_history();
  const Timestamp start = testing::ManualClock::start;

  EXPECT_FALSE(orders.find(id, as_of(start - 1us)));
  EXPECT_EQ(orders.load(id, as_of(start)).version(), StreamVersion{1});
  EXPECT_EQ(orders.load(id, as_of(start + 2h - 1us)).version(), StreamVersion{2});
  EXPECT_EQ(orders.load(id, as_of(start + 2h)).version(), StreamVersion{3});
}

TEST_F(RepositoryTest, AllowsNoChangeOfThePast) {
  keep_a_history();
  Order past = orders.load(id, at_version(StreamVersion{1}));

  EXPECT_TRUE(past.is_historical());
  EXPECT_THAT(message_of<UsageError>([&] { past.note("changed"); }),
              HasSubstr("loaded as of an earlier moment"));
  EXPECT_THAT(message_of<UsageError>([&] { orders.save(past); }),
              HasSubstr("loaded as of an earlier moment"));
  EXPECT_EQ(orders.load(id).version(), StreamVersion{4});
}

TEST_F(RepositoryTest, SavesOnceUnderOneId) {
  Order order = Order::place(id, "jane", 100);
  orders.save(order, {.append_id = "place-1"});

  Order again = Order::place(id, "jane", 100);
  const AppendResult repeated = orders.save(again, {.append_id = "place-1"});

  EXPECT_TRUE(repeated.repeated);
  EXPECT_EQ(repeated.last, GlobalSequence{1});
  EXPECT_EQ(again.version(), StreamVersion{1});
  EXPECT_THAT(again.changes(), IsEmpty());
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

class Draft : public AggregateRoot<OrderState, test::OrderEvents> {
 public:
  static constexpr std::string_view category = "draft";
  using AggregateRoot::AggregateRoot;
  void note() { record(test::OrderNoted{"x"}); }
};

TEST_F(RepositoryTest, RefusesAnAggregateOfAnotherCategory) {
  Draft draft{StreamId::of("order", "1")};
  draft.note();

  EXPECT_THAT(message_of<UsageError>([&] { Repository<Draft>{store}.save(draft); }),
              HasSubstr("isn't of this repository's category"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

TEST_F(RepositoryTest, NamesAnEventThatCannotBeStored) {
  Order order = Order::place(id, "\xff", 100);

  EXPECT_THAT(
      message_of<UsageError>([&] { orders.save(order); }),
      AllOf(HasSubstr("order.placed can't be stored"), HasSubstr("customer"), HasSubstr("UTF-8")));
  EXPECT_THAT(order.changes(), SizeIs(1));
  EXPECT_THAT(lines(store.read_all()), IsEmpty());
}

TEST_F(RepositoryTest, PublishesAsThePolicySays) {
  testing::MemoryStore exporting{{.publishes = [](const EventType& type, const StreamId& stream) {
    return type.publication == should_publish && stream.key() != "secret";
  }}};
  for (const std::string_view key : {"open", "secret"}) {
    Order order = Order::place(Id<Order>::from(key), "jane", 100);
    order.note("local");
    Repository<Order>{exporting}.save(order);
  }

  std::string published;
  for (const StoredEvent& event : exporting.read_all()) published += event.publishes() ? '1' : '0';
  EXPECT_EQ(published, "1000");
}

}  // namespace
}  // namespace stela::repository_test
