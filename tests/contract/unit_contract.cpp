// What a unit of work needs of every event store: a check of the aggregates that it only read.
#include "contract/event_store.hpp"
#include "support/counters.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::unit_contract {
namespace {

using test::EventStoreContract;
using test::lines;
using test::message_of;
using test::Order;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Id<Order> ann = Id<Order>::from("ann");
const Id<Order> bob = Id<Order>::from("bob");

void note(EventLog& log, const Id<Order>& id) {
  Repository<Order> orders{log};
  auto order = orders.find(id);
  if (!order) order.emplace(id);
  order->note("n");
  orders.save(*order);
}

/// Decides about `changed` by what `read` is.
void decide(UnitOfWork& unit, const Id<Order>& read, const Id<Order>& changed, bool requires_it) {
  const Order& order = unit.load(read);
  if (requires_it) unit.require_unchanged(order);
  unit.load(changed).note("decided");
}

TEST_P(EventStoreContract, CommitsOneOfTwoUnitsThatRequireEachOthersStreams) {
  for (const bool requires_it : {false, true}) {
    note(*store, ann);
    note(*store, bob);
    UnitOfWork one{*store};
    UnitOfWork other{*store};
    decide(one, ann, bob, requires_it);
    decide(other, bob, ann, requires_it);
    one.commit();
    const GlobalSequence before = store->last_sequence();

    if (requires_it) {
      EXPECT_THAT(message_of<ConcurrencyConflict>([&] { other.commit(); }), HasSubstr("order-bob"));
      EXPECT_EQ(store->last_sequence(), before);
    } else {
      EXPECT_EQ(other.commit().first, before.next());
    }
  }
}

TEST_P(EventStoreContract, ChecksRequiredStreamsOfAUnitWithoutChanges) {
  note(*store, ann);
  int calls = 0;
  UnitOfWork unit{*store};
  unit.require_unchanged(unit.load(ann));
  unit.in_transaction([&](Transaction&) { ++calls; });
  unit.commit();
  EXPECT_EQ(calls, 1);

  unit.require_unchanged(unit.load(ann));
  note(*store, ann);
  unit.in_transaction([&](Transaction&) { ++calls; });
  // It stays required until it is committed.
  EXPECT_THROW(unit.commit(), ConcurrencyConflict);
  EXPECT_THROW(unit.commit(), ConcurrencyConflict);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{2});
}

TEST_P(EventStoreContract, RequiresAnAggregateWithoutEventsToStayWithout) {
  note(*store, bob);
  UnitOfWork unit{*store};
  unit.require_unchanged(unit.add(Order{ann}));
  unit.load(bob).note("there is no ann");
  EXPECT_EQ(unit.commit().versions.front(), StreamVersion{2});

  unit.require_unchanged(unit.add(Order{ann}));
  unit.load(bob).note("there is still no ann");
  note(*store, ann);
  EXPECT_THAT(message_of<ConcurrencyConflict>([&] { unit.commit(); }), HasSubstr("no stream"));
  EXPECT_EQ(store->last_sequence(), GlobalSequence{3});
}

TEST_P(EventStoreContract, SavesAnAggregateThatAUnitChangesAndRequires) {
  note(*store, ann);
  UnitOfWork unit{*store};
  unit.require_unchanged(unit.load(ann));
  unit.load(ann).note("changed after all");
  EXPECT_THAT(unit.commit().versions, ElementsAre(StreamVersion{2}));
}

TEST_P(EventStoreContract, RepeatsAUnitUnderItsIdThoughARequiredStreamChanged) {
  note(*store, ann);
  note(*store, bob);
  const auto commit = [&](bool interrupted) {
    UnitOfWork unit{*store};
    decide(unit, ann, bob, true);
    if (interrupted) note(*store, ann);
    return unit.commit({.append_id = "decide-1"});
  };

  EXPECT_THROW(commit(true), ConcurrencyConflict);
  const AppendResult first = commit(false);
  EXPECT_FALSE(first.repeated);
  const AppendResult again = commit(true);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, first.first);
  EXPECT_EQ(Repository<Order>{*store}.load(bob).version(), StreamVersion{2});
}

TEST_P(EventStoreContract, RollsBackANestedUnitIfARequiredStreamChanged) {
  note(*store, ann);
  note(*store, bob);
  store->transact([&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    decide(unit, ann, bob, true);
    note(transaction, ann);
    EXPECT_THROW(unit.commit(), ConcurrencyConflict);
    EXPECT_EQ(Repository<Order>{transaction}.load(bob).version(), StreamVersion{1});

    UnitOfWork again{transaction};
    decide(again, ann, bob, true);
    again.commit();
  });

  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-ann@1 order.noted", "2 order-bob@1 order.noted",
                          "3 order-ann@2 order.noted", "4 order-bob@2 order.noted"));
}

/// One unit with two aggregates, events of other streams after theirs.
void count(EventLog& log) {
  using Counter = test::SnapshotCounter<2>;
  UnitOfWork unit{log};
  for (const char* const id : {"a", "b"}) {
    Counter& counter = unit.add(Counter{Id<Counter>::from(id)});
    counter.add(1);
    counter.add(1);
  }
  unit.append(StreamId::parse("loose-1"), ExpectedVersion::any(), test::Added{});
  unit.in_transaction([](Transaction& transaction) { note(transaction, ann); });
  unit.commit();
}

/// "counter-a@2 is event 2": what the snapshots of those streams say that they stand on.
std::vector<std::string> snapshots(EventStore& store) {
  std::vector<std::string> all;
  for (const char* const name : {"counter-a", "counter-b"}) {
    const auto snapshot =
        store.find_snapshot(StreamId::parse(name), StreamVersion::max(), GlobalSequence::max());
    if (!snapshot) continue;
    all.push_back(name + std::string{'@'} + std::to_string(snapshot->version.value()) +
                  " is event " + std::to_string(snapshot->sequence.value()));
  }
  return all;
}

TEST_P(EventStoreContract, GivesEachSnapshotOfAUnitTheSequenceOfItsOwnEvent) {
  count(*store);
  EXPECT_THAT(snapshots(*store), ElementsAre("counter-a@2 is event 2", "counter-b@2 is event 4"));
}

TEST_P(EventStoreContract, GivesEachSnapshotOfAUnitInATransactionTheSequenceOfItsOwnEvent) {
  store->transact([&](Transaction& transaction) {
    note(transaction, ann);
    transaction.transact([](Transaction& inner) { count(inner); });
  });
  EXPECT_THAT(snapshots(*store), ElementsAre("counter-a@2 is event 3", "counter-b@2 is event 5"));
}

TEST_P(EventStoreContract, RefusesAUnitThatRequiresARolledBackVersion) {
  note(*store, ann);
  note(*store, bob);
  store->transact([&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    const auto and_back = [&](Transaction& inner) {
      note(inner, ann);
      decide(unit, ann, bob, true);
      throw std::runtime_error{"no"};
    };
    EXPECT_THROW(transaction.transact(and_back), std::runtime_error);
    EXPECT_THAT(message_of<UsageError>([&] { unit.commit(); }), HasSubstr("load it again"));

    UnitOfWork again{transaction};
    decide(again, ann, bob, true);
    again.commit();
  });

  EXPECT_EQ(Repository<Order>{*store}.load(bob).version(), StreamVersion{2});
  EXPECT_EQ(Repository<Order>{*store}.load(ann).version(), StreamVersion{1});
}

TEST_P(EventStoreContract, CommitsAUnitAgainAfterItsTransactionWasRolledBack) {
  note(*store, ann);
  note(*store, bob);
  const auto decide_and_fail = [&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    decide(unit, ann, bob, true);
    unit.commit();
    throw std::runtime_error{"no"};
  };
  EXPECT_THROW(store->transact(decide_and_fail), std::runtime_error);
  UnitOfWork unit{*store};
  decide(unit, ann, bob, true);
  unit.commit();

  EXPECT_EQ(store->last_sequence(), GlobalSequence{3});
}

TEST_P(EventStoreContract, TellsDecisionsTheTimeByWhichItRecords) {
  clock.advance(std::chrono::hours{3});
  Timestamp outside;
  Timestamp inside;
  decide(*store, [&](Decision& decision) { outside = decision.now(); });
  store->transact([&](Transaction& transaction) {
    decide(transaction, [&](Decision& decision) { inside = decision.now(); });
  });
  EXPECT_EQ(outside, clock.now());
  EXPECT_EQ(inside, clock.now());
}

}  // namespace
}  // namespace stela::unit_contract
