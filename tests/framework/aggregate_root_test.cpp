#include "support/messages.hpp"
#include "support/orders.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::aggregate_root_test {
namespace {

using test::message_of;
using test::Order;
using test::OrderNoted;
using test::OrderPlaced;
using test::OrderState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Id<Order> id = Id<Order>::from("1");

TEST(AggregateRoot, BeginsWithoutHistory) {
  const Order order{id};

  EXPECT_EQ(order.stream().name(), "order-1");
  EXPECT_EQ(order.version(), StreamVersion{0});
  EXPECT_EQ(order.state(), OrderState{});
  EXPECT_THAT(order.changes(), IsEmpty());
  EXPECT_FALSE(order.is_historical());
  EXPECT_EQ(id_of(order), id);
}

TEST(AggregateRoot, AppliesAndKeepsWhatItRecords) {
  Order order = Order::place(id, "jane", 100);
  order.note("by phone");

  EXPECT_EQ(order.state().total_cents, 100);
  EXPECT_EQ(order.state().notes, 1);
  EXPECT_EQ(order.version(), StreamVersion{0});
  ASSERT_THAT(order.changes(), SizeIs(2));
  EXPECT_EQ(std::get<OrderPlaced>(order.changes()[0]).customer, "jane");
  EXPECT_EQ(std::get<OrderNoted>(order.changes()[1]).text, "by phone");
}

TEST(AggregateRoot, RecordsNothingWhenItsRuleRefuses) {
  Order order{id};

  EXPECT_THROW(order.ship("dhl"), std::domain_error);
  EXPECT_THAT(order.changes(), IsEmpty());
  EXPECT_EQ(order.state(), OrderState{});
}

struct Picky {
  static constexpr EventType event_type{"picky.done"};
  template <class Archive>
  void serialize(Archive&) {}
};
/// Refuses its second event, when it has counted it.
struct PickyState {
  std::int64_t done = 0;
  void apply(const Picky&) {
    if (++done > 1) throw std::runtime_error{"not this one"};
  }
};
class PickyAggregate : public AggregateRoot<PickyState, EventSet<Picky>> {
 public:
  static constexpr std::string_view category = "picky";
  using AggregateRoot::AggregateRoot;
  void act() { record(Picky{}); }
};

TEST(AggregateRoot, IsUnusableAfterItsStateRefusedAnEvent) {
  testing::MemoryStore store;
  PickyAggregate aggregate{StreamId::of("picky", "1")};
  aggregate.act();

  EXPECT_THROW(aggregate.act(), std::runtime_error);

  const auto load_again = HasSubstr("'picky-1' recorded an event that its state failed to apply");
  EXPECT_THAT(message_of<UsageError>([&] { (void)aggregate.state(); }), load_again);
  EXPECT_THAT(message_of<UsageError>([&] { (void)aggregate.changes(); }), load_again);
  EXPECT_THAT(message_of<UsageError>([&] { aggregate.act(); }), load_again);
  EXPECT_THAT(message_of<UsageError>([&] { Repository<PickyAggregate>{store}.save(aggregate); }),
              load_again);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{});
}

TEST(AggregateRoot, IsUnusableAfterItsStateRefusedAnEventDuringASave) {
  testing::MemoryStore store;
  PickyAggregate aggregate{StreamId::of("picky", "1")};
  aggregate.act();
  const Subscription listening = store.on_commit([&](const CommitNotice&) { aggregate.act(); });

  Repository<PickyAggregate>{store}.save(aggregate);

  EXPECT_THAT(message_of<UsageError>([&] { (void)aggregate.state(); }), HasSubstr("load it again"));
}

TEST(AggregateRoot, RecordsNothingInsideAReplay) {
  testing::MemoryStore store;
  Order order = Order::place(id, "jane", 100);
  Repository<Order>{store}.save(order);

  for (const StoredEvent& event : store.read_all()) {
    const ContextScope replay = ContextScope::replaying(event);
    EXPECT_THAT(message_of<UsageError>([&] { order.note("again"); }), HasSubstr("inside a replay"));
  }
  EXPECT_THAT(order.changes(), IsEmpty());
  EXPECT_EQ(order.state().notes, 0);
}

}  // namespace
}  // namespace stela::aggregate_root_test
