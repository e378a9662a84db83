// What every event store refuses because it belongs to another store.
#include "contract/identity.hpp"
#include "contract/tagged_events.hpp"
#include "support/counters.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <string>

namespace stela::identity_contract {
namespace {

using test::DemandCounter;
using test::IdentityContract;
using test::item;
using test::message_of;
using test::Order;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct UndoneInIdentity {};

TEST_P(IdentityContract, RefusesAnAggregateOfAnotherStoreWhoseVersionFits) {
  Order order = loaded();
  order.note("for the first");
  Repository<Order> elsewhere{*other};

  EXPECT_THAT(message_of<UsageError>([&] { elsewhere.save(order); }), names_both());
  EXPECT_THAT(message_of<UsageError>([&] { elsewhere.save(order, {.append_id = "once"}); }),
              names_both());
  EXPECT_THAT(
      message_of<UsageError>([&] {
        other->transact([&](Transaction& inside) { Repository<Order>{inside}.save(order); });
      }),
      names_both());
  EXPECT_EQ(other->last_sequence(), GlobalSequence{1});

  EXPECT_EQ(Repository<Order>{*store}.save(order).last, GlobalSequence{2});
}

TEST_P(IdentityContract, RefusesAnAggregateThatWasSavedElsewhereWithoutChangesToo) {
  const Id<Order> id = Id<Order>::from("8");
  Order order = Order::place(id, "jane", 100);
  Repository<Order>{*store}.save(order);

  EXPECT_THAT(message_of<UsageError>([&] { Repository<Order>{*other}.save(order); }),
              AllOf(HasSubstr("order-8"), HasSubstr(place_of(*other))));
}

TEST_P(IdentityContract, RefusesAnAggregateOfAnotherStoreInAUnitOfWork) {
  UnitOfWork unit{*other};
  EXPECT_THAT(message_of<UsageError>([&] { unit.add(loaded()); }), names_both());

  Order& kept = unit.load(of_both);
  kept = loaded();
  kept.note("for the first");
  EXPECT_THAT(message_of<UsageError>([&] { unit.commit(); }), names_both());
  EXPECT_EQ(other->last_sequence(), GlobalSequence{1});
}

TEST_P(IdentityContract, RefusesASnapshotOfAnAggregateOfAnotherStore) {
  const Id<DemandCounter> id = Id<DemandCounter>::from("1");
  for (EventStore* const one : {store.get(), other.get()}) {
    DemandCounter counter{id};
    counter.add(one == store.get() ? 1 : 2);
    Repository<DemandCounter>{*one}.save(counter);
  }
  const DemandCounter foreign = Repository<DemandCounter>{*store}.load(id);
  Repository<DemandCounter> elsewhere{*other};

  EXPECT_THAT(message_of<UsageError>([&] { elsewhere.snapshot(foreign); }),
              HasSubstr(place_of(*other)));
  EXPECT_EQ(elsewhere.load(id).state().sum, 2);
}

TEST_P(IdentityContract, AcceptsAnAggregateAnywhereWhileNoStoreHasItsEvents) {
  Order order = Order::place(Id<Order>::from("9"), "jane", 100);
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    Repository<Order>{transaction}.save(order);
    throw UndoneInIdentity{};
  }),
               UndoneInIdentity);
  EXPECT_THAT(order.changes(), SizeIs(1));

  EXPECT_EQ(Repository<Order>{*other}.save(order).last, GlobalSequence{2});
  order.note("for the second");
  EXPECT_THROW(Repository<Order>{*store}.save(order), UsageError);
}

TEST_P(IdentityContract, RefusesAConditionThatWasReadInAnotherStore) {
  const Query query{{item({}, {"student-s9"})}};
  const AppendCondition foreign = AppendCondition::at(store->standpoint(), query);
  const AppendCondition own = AppendCondition::at(other->standpoint(), query);
  const auto names_the_places = AllOf(HasSubstr(place_of(*store)), HasSubstr(place_of(*other)),
                                      HasSubstr("read it in the store that appends"));

  EXPECT_THAT(message_of<UsageError>([&] { other->append({.condition = &foreign}); }),
              names_the_places);
  other->transact([&](Transaction& transaction) {
    EXPECT_THAT(message_of<UsageError>([&] { transaction.append({.condition = &foreign}); }),
                names_the_places);
    const AppendCondition inside = AppendCondition::at(transaction.standpoint(), query);
    EXPECT_NO_THROW(transaction.append({.condition = &inside}));
  });
  EXPECT_NO_THROW(other->append({.condition = &own}));
}

}  // namespace
}  // namespace stela::identity_contract
