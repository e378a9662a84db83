#include "support/counters.hpp"
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::unit_of_work_test {
namespace {

using test::Added;
using test::DemandCounter;
using test::lines;
using test::message_of;
using test::Order;
using test::OrderNoted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UnitOfWorkTest : public ::testing::Test {
 protected:
  void given_an_order() {
    Order order = Order::place(id, "jane", 100);
    Repository<Order>{store}.save(order);
  }

  const Id<Order> id = Id<Order>::from("1");
  const Id<DemandCounter> counter_id = Id<DemandCounter>::from("1");
  testing::MemoryStore store;
  UnitOfWork unit{store};
};

TEST_F(UnitOfWorkTest, CommitsAggregatesOfSeveralTypesTogether) {
  given_an_order();
  unit.load<Order>(id).note("counted");
  unit.add(DemandCounter{counter_id}).add(5);
  const AppendResult result = unit.commit();

  EXPECT_EQ(result.first, GlobalSequence{2});
  EXPECT_EQ(result.last, GlobalSequence{3});
  EXPECT_THAT(lines(store.read_all()),
              ElementsAre(HasSubstr("1 order-1@1 order.placed"), HasSubstr("2 order-1@2"),
                          R"(3 counter-1@1 counter.added {"amount":5})"));
}

TEST_F(UnitOfWorkTest, CommitsNothingIfOneAggregateLostARace) {
  given_an_order();
  unit.load<Order>(id).note("lost");
  unit.add(DemandCounter{counter_id}).add(5);
  Order winner = Repository<Order>{store}.load(id);
  winner.note("won");
  Repository<Order>{store}.save(winner);

  EXPECT_THROW(unit.commit(), ConcurrencyConflict);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(UnitOfWorkTest, GivesOneObjectForOneAggregate) {
  given_an_order();
  Order& order = unit.load<Order>(id);
  order.note("once");

  EXPECT_EQ(&unit.load<Order>(id), &order);
  EXPECT_EQ(unit.find<Order>(id), &order);
  EXPECT_EQ(unit.find<Order>(id)->state().notes, 1);
  DemandCounter& counter = unit.add(DemandCounter{counter_id});
  EXPECT_EQ(unit.find<DemandCounter>(counter_id), &counter);
}

TEST_F(UnitOfWorkTest, FindsNothingWhereThereAreNoEvents) {
  EXPECT_EQ(unit.find<Order>(id), nullptr);
  EXPECT_THROW(unit.load<Order>(id), AggregateNotFound);
}

TEST_F(UnitOfWorkTest, RefusesTwoObjectsForOneStream) {
  given_an_order();
  unit.load<Order>(id);

  EXPECT_THAT(message_of<UsageError>([&] { unit.add(Order{id}); }),
              HasSubstr("in this unit of work already"));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { unit.append(id.stream(), ExpectedVersion::any(), OrderNoted{"x"}); }),
              HasSubstr("record on that"));
}

TEST_F(UnitOfWorkTest, RefusesAnAggregateOfAStreamThatItAppendedTo) {
  given_an_order();
  unit.append(id.stream(), ExpectedVersion::exactly(StreamVersion{1}), OrderNoted{"x"});

  EXPECT_THAT(message_of<UsageError>([&] { unit.load<Order>(id).note("y"); }),
              HasSubstr("'order-1' has events in this unit of work"));
  EXPECT_THAT(message_of<UsageError>([&] { unit.add(Order{id}); }),
              HasSubstr("'order-1' has events in this unit of work"));
  unit.commit();
  EXPECT_EQ(unit.load<Order>(id).version(), StreamVersion{2});
}

class Archive : public AggregateRoot<test::OrderState, test::OrderEvents> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};

TEST_F(UnitOfWorkTest, RefusesOneStreamAsTwoTypes) {
  given_an_order();
  unit.load<Order>(id);

  EXPECT_THAT(message_of<UsageError>([&] { unit.load<Archive>(Id<Archive>::from("1")); }),
              HasSubstr("aggregate of another type"));
}

TEST_F(UnitOfWorkTest, AppendsEventsWithoutAnAggregate) {
  const StreamId audit = StreamId::parse("audit-1");
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"a"});
  unit.append(audit, ExpectedVersion::none(), Added{2});
  unit.commit();

  EXPECT_THAT(lines(store.read_all()), ElementsAre(R"(1 audit-1@1 order.noted {"text":"a"})",
                                                   R"(2 audit-1@2 counter.added {"amount":2})"));
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"b"});
  EXPECT_THROW(unit.commit(), ConcurrencyConflict);
}

TEST_F(UnitOfWorkTest, RefusesTwoExpectationsForOneStream) {
  const StreamId audit = StreamId::parse("audit-1");
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"a"});

  const auto other = ExpectedVersion::exactly(StreamVersion{2});
  EXPECT_THAT(message_of<UsageError>([&] { unit.append(audit, other, OrderNoted{"b"}); }),
              HasSubstr("two different expected versions"));
}

TEST_F(UnitOfWorkTest, RefusesAnExpectationAfterAnEventThatHadNone) {
  const StreamId audit = StreamId::parse("audit-1");
  unit.append(audit, ExpectedVersion::any(), OrderNoted{"a"});

  EXPECT_THAT(
      message_of<UsageError>([&] { unit.append(audit, ExpectedVersion::none(), OrderNoted{"b"}); }),
      HasSubstr("two different expected versions"));
}

TEST_F(UnitOfWorkTest, AppendsToAStreamThatItBeginsAndContinues) {
  const StreamId audit = StreamId::parse("audit-1");
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"a"});
  unit.append(audit, ExpectedVersion::any(), OrderNoted{"b"});
  unit.commit();

  EXPECT_THAT(lines(store.read_all()), ElementsAre(R"(1 audit-1@1 order.noted {"text":"a"})",
                                                   R"(2 audit-1@2 order.noted {"text":"b"})"));
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"c"});
  unit.append(audit, ExpectedVersion::any(), OrderNoted{"d"});
  EXPECT_THROW(unit.commit(), ConcurrencyConflict);
}

TEST_F(UnitOfWorkTest, ContinuesAStreamThatItFoundAtAVersion) {
  const StreamId audit = StreamId::parse("audit-1");
  unit.append(audit, ExpectedVersion::none(), OrderNoted{"a"});
  unit.commit();
  unit.append(audit, ExpectedVersion::exactly(StreamVersion{1}), OrderNoted{"b"});
  unit.append(audit, ExpectedVersion::any(), OrderNoted{"c"});
  unit.append(audit, ExpectedVersion::exactly(StreamVersion{1}), OrderNoted{"d"});
  unit.commit();

  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
}

TEST_F(UnitOfWorkTest, RequiresItsOwnAggregatesOnly) {
  given_an_order();
  const Order stranger = Repository<Order>{store}.load(id);
  const auto require = [&](const auto& aggregate) {
    return message_of<UsageError>([&] { unit.require_unchanged(aggregate); });
  };

  EXPECT_THAT(require(stranger), HasSubstr("'order-1' isn't an aggregate of this unit of work"));
  const Order copy = unit.load<Order>(id);
  EXPECT_THAT(require(copy), HasSubstr("isn't an aggregate of this unit of work"));
  EXPECT_THAT(require(Archive{id.stream()}), HasSubstr("aggregate of another type"));
  unit.append(counter_id.stream(), ExpectedVersion::any(), Added{1});
  EXPECT_THAT(require(DemandCounter{counter_id}), HasSubstr("isn't an aggregate of this unit"));
  unit.require_unchanged(unit.load<Order>(id));
  unit.commit();
  EXPECT_THAT(require(stranger), HasSubstr("isn't an aggregate of this unit of work"));
}

TEST_F(UnitOfWorkTest, RunsTheCallersWorkAfterTheEvents) {
  given_an_order();
  unit.load<Order>(id).note("seen");
  std::vector<std::string> seen;
  unit.in_transaction(
      [&](Transaction& transaction) { seen = lines(transaction.read_stream(id.stream())); });
  unit.commit();

  EXPECT_THAT(seen, ElementsAre(HasSubstr("placed"), HasSubstr("noted")));
}

TEST_F(UnitOfWorkTest, RollsTheEventsBackWithTheCallersWork) {
  unit.add(Order::place(id, "jane", 100));
  unit.in_transaction([](Transaction&) { throw std::runtime_error{"no"}; });

  EXPECT_THROW(unit.commit(), std::runtime_error);
  EXPECT_THAT(lines(store.read_all()), IsEmpty());
}

TEST_F(UnitOfWorkTest, RunsTheCallersWorkWithoutEvents) {
  int calls = 0;
  unit.in_transaction([&](Transaction&) { ++calls; });
  unit.commit();
  unit.commit();

  EXPECT_EQ(calls, 1);
}

TEST_F(UnitOfWorkTest, JoinsATransactionOfTheCallers) {
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    UnitOfWork inner{transaction};
    inner.add(Order::place(id, "jane", 100));
    inner.commit();
    EXPECT_EQ(Repository<Order>{transaction}.load(id).version(), StreamVersion{1});
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_THAT(lines(store.read_all()), IsEmpty());
}

TEST_F(UnitOfWorkTest, CommitsOnceUnderOneId) {
  int calls = 0;
  const auto place = [&] {
    UnitOfWork again{store};
    again.add(Order::place(id, "jane", 100));
    again.in_transaction([&](Transaction&) { ++calls; });
    return again.commit({.append_id = "place-1"});
  };

  EXPECT_FALSE(place().repeated);
  EXPECT_TRUE(place().repeated);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(UnitOfWorkTest, IsReusableAfterACommit) {
  given_an_order();
  unit.load<Order>(id).note("first");
  unit.commit();
  unit.load<Order>(id).note("second");
  unit.commit();

  EXPECT_EQ(Repository<Order>{store}.load(id).state().notes, 2);
}

TEST_F(UnitOfWorkTest, ShowsItsResultAsLongAsItLives) {
  given_an_order();
  const Order& order = unit.load<Order>(id);
  unit.load<Order>(id).note("first");
  DemandCounter& counter = unit.add(DemandCounter{counter_id});
  counter.add(5);
  unit.commit();
  Order& again = unit.load<Order>(id);
  again.note("second");
  unit.commit();

  EXPECT_EQ(order.version(), StreamVersion{2});
  EXPECT_EQ(order.state().notes, 1);
  EXPECT_THAT(order.changes(), IsEmpty());
  EXPECT_EQ(counter.version(), StreamVersion{1});
  EXPECT_NE(&again, &order);
  EXPECT_EQ(again.version(), StreamVersion{3});
}

TEST_F(UnitOfWorkTest, RefusesARecordAfterTheCommit) {
  given_an_order();
  Order& order = unit.load<Order>(id);
  unit.commit();

  EXPECT_THAT(message_of<UsageError>([&] { order.note("lost"); }),
              HasSubstr("'order-1' records an event after its unit of work was committed"));
  Order copy = unit.load<Order>(id);
  copy.note("kept");
  EXPECT_EQ(Repository<Order>{store}.save(copy).last, GlobalSequence{2});
}

TEST_F(UnitOfWorkTest, LogsEventsOnAnAggregateThatReplacedItsOwn) {
  test::RecordingLog log;
  testing::MemoryStore logging{{.log = &log}};
  UnitOfWork other{logging};
  Order& order = other.add(Order::place(id, "jane", 100));
  const Subscription listening = logging.on_commit([&](const CommitNotice&) {
    order = Repository<Order>{logging}.load(id);
    order.note("late");
  });
  other.commit();

  EXPECT_THAT(log.entries(), ElementsAre("error unit.changes_lost stream=order-1"));
  EXPECT_EQ(logging.last_sequence(), GlobalSequence{1});
}

TEST_F(UnitOfWorkTest, ShowsThatItsCommitWasRolledBack) {
  std::unique_ptr<UnitOfWork> inner;
  const Order* order = nullptr;
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    inner = std::make_unique<UnitOfWork>(transaction);
    order = &inner->add(Order::place(id, "jane", 100));
    inner->commit();
    EXPECT_EQ(order->version(), StreamVersion{1});
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);

  EXPECT_EQ(order->version(), StreamVersion{0});
  EXPECT_THAT(order->changes(), SizeIs(1));
}

TEST_F(UnitOfWorkTest, RefusesAnAggregateThatDiffersFromItsAppendId) {
  unit.add(Order::place(id, "jane", 100));
  unit.commit({.append_id = "place-1"});
  UnitOfWork again{store};
  const Order& same = again.add(Order::place(id, "jane", 100));
  again.commit({.append_id = "place-1"});
  EXPECT_EQ(same.version(), StreamVersion{1});

  const Order& other = again.add(Order::place(id, "joan", 100));
  again.commit({.append_id = "place-1"});
  EXPECT_THAT(message_of<UsageError>([&] { (void)other.version(); }),
              HasSubstr("under an append id that had stored something else"));
}

TEST_F(UnitOfWorkTest, FindsEachOfManyStreamsWithoutALookAtTheOthers) {
  constexpr int streams = 100'000;
  const std::clock_t begin = std::clock();
  for (int i = 0; i < streams; ++i) {
    unit.append(StreamId::of("loose", std::to_string(i)), ExpectedVersion::any(), OrderNoted{});
    unit.add(Order{Id<Order>::from(std::to_string(i))});
  }

  // Looking at all of them each time takes minutes.
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 30);
  EXPECT_THAT(message_of<UsageError>([&] { unit.add(Order{Id<Order>::from("7")}); }),
              HasSubstr("is in this unit of work already"));
}

TEST_F(UnitOfWorkTest, DropsUncommittedEvents) {
  { UnitOfWork{store}.add(Order::place(id, "jane", 100)); }
  EXPECT_THAT(lines(store.read_all()), IsEmpty());
}

}  // namespace
}  // namespace stela::unit_of_work_test
