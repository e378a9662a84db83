// What follows the transaction, however it ends: kinds of events, aggregates, heads, snapshots.
#include "contract/event_store.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"
#include "support/process.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::outcome_contract {
namespace {

using test::EventStoreContract;
using test::lines;
using test::Order;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Decodes with one decoder for as long as it lives, as an inline projector does.
class Reader : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "reader"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction&, std::span<const StoredEvent> events) override {
    for (const StoredEvent& event : events) {
      decoder_.decode(event, [&]<class E>(const E&) { seen.emplace_back(E::event_type.name); });
    }
  }
  std::vector<std::string> seen;

 private:
  EventDecoder<test::OrderEvents> decoder_{Codec::json};
};

TEST_P(EventStoreContract, ShowsNewTypesCorrectlyAfterOthersWereRolledBack) {
  Reader reader;
  store->attach(reader);
  const StreamId order = StreamId::parse("order-1");
  const auto append = [&](EventLog& log, const NewEvent& event) {
    const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}});
  };
  const NewEvent shipped{"order.shipped", 1, true, R"({"carrier":"dhl"})"};
  const NewEvent noted{"order.noted", 1, true, R"({"text":"x"})"};

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    append(transaction, shipped);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  append(*store, noted);
  append(*store, shipped);

  EXPECT_THAT(reader.seen, ElementsAre("order.shipped", "order.noted", "order.shipped"));
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.noted", "2 order-1@2 order.shipped"));
}

TEST_P(EventStoreContract, LearnsNoTypesFromReadsDuringARolledBackTransaction) {
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&one, 1}});
    (void)lines(store->read_all());
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  append("order-1", {"b", "a"});

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 order-1@1 b", "2 order-1@2 a"));
  EXPECT_THAT(lines(store->read_all({.event_types = {"a"}})), ElementsAre("2 order-1@2 a"));
}

struct RollBack {};

/// Runs `work` in a transaction, or a savepoint of one, that is rolled back.
template <class Work>
void roll_back(EventLog& log, Work&& work) {
  try {
    log.transact([&](Transaction& transaction) {
      work(transaction);
      throw RollBack{};
    });
  } catch (const RollBack&) {
  }
}

const Id<Order> id = Id<Order>::from("1");

void save(EventLog& log, Order& order) {
  Repository<Order>{log}.save(order);
}

/// "version 2, 1 unsaved, 3 notes"; or why it can't be used.
std::string standing(const Order& order) {
  try {
    return "version " + std::to_string(order.version().value()) + ", " +
           std::to_string(order.changes().size()) + " unsaved, " +
           std::to_string(order.state().notes) + " notes";
  } catch (const UsageError& e) {
    return e.what();
  }
}

TEST_P(EventStoreContract, KeepsEventsThatAListenerRecordsDuringASave) {
  Order order = Order::place(id, "jane", 100);
  bool noted = false;
  const Subscription listening = store->on_commit([&](const CommitNotice&) {
    if (!std::exchange(noted, true)) order.note("confirmed");
  });

  save(*store, order);
  EXPECT_EQ(standing(order), "version 1, 1 unsaved, 1 notes");
  save(*store, order);
  EXPECT_EQ(standing(order), "version 2, 0 unsaved, 1 notes");
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 order.noted"));
}

/// Records on an aggregate inside of the append of its first event.
class Recorder : public TransactionParticipant {
 public:
  explicit Recorder(Order& order) : order_{order} {}
  std::string_view name() const noexcept override { return "recorder"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction&, std::span<const StoredEvent> events) override {
    if (events.front().version == StreamVersion{2}) order_.note("appended");
  }

 private:
  Order& order_;
};

TEST_P(EventStoreContract, KeepsEventsThatAParticipantRecordsDuringASave) {
  Order order = Order::place(id, "jane", 100);
  Recorder recorder{order};
  store->attach(recorder);

  store->transact([&](Transaction& transaction) {
    save(transaction, order);
    order.ship("dhl");
    save(transaction, order);
    EXPECT_EQ(standing(order), "version 2, 1 unsaved, 1 notes");
  });
  EXPECT_EQ(standing(order), "version 2, 1 unsaved, 1 notes");
  save(*store, order);
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 order.shipped",
                          "3 order-1@3 order.noted"));
}

TEST_P(EventStoreContract, KeepsOneMarkOfAnAggregateThatIsSavedOftenInATransaction) {
  Order order = Order::place(id, "jane", 100);
  std::shared_ptr<const TransactionOutcome> outcome;
  store->transact([&](Transaction& transaction) {
    save(transaction, order);
    outcome = transaction.outcome_of(GlobalSequence{1});
    const auto with_one_mark = outcome.use_count();
    for (int i = 0; i < 50; ++i) {
      order.note("again");
      save(transaction, order);
    }
    EXPECT_EQ(outcome.use_count(), with_one_mark);
    EXPECT_EQ(standing(order), "version 51, 0 unsaved, 50 notes");
  });
  EXPECT_EQ(standing(order), "version 51, 0 unsaved, 50 notes");
}

TEST_P(EventStoreContract, LeavesAnAggregateAsItWasWhenItsTransactionIsRolledBack) {
  Order order = Order::place(id, "jane", 100);
  save(*store, order);
  order.note("first");

  roll_back(*store, [&](Transaction& transaction) {
    save(transaction, order);
    EXPECT_EQ(standing(order), "version 2, 0 unsaved, 1 notes");
  });
  EXPECT_EQ(standing(order), "version 1, 1 unsaved, 1 notes");
  append("order-1", {"order.shipped"});

  EXPECT_THROW(save(*store, order), ConcurrencyConflict);
  EXPECT_EQ(standing(order), "version 1, 1 unsaved, 1 notes");
}

TEST_P(EventStoreContract, SavesAnAggregateTwiceInOneTransaction) {
  Order order = Order::place(id, "jane", 100);
  store->transact([&](Transaction& transaction) {
    save(transaction, order);
    order.note("first");
    EXPECT_EQ(standing(order), "version 1, 1 unsaved, 1 notes");
    save(transaction, order);
    order.note("second");
  });
  EXPECT_EQ(standing(order), "version 2, 1 unsaved, 2 notes");
  save(*store, order);

  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 order.noted",
                          "3 order-1@3 order.noted"));
  EXPECT_EQ(standing(order), "version 3, 0 unsaved, 2 notes");
}

TEST_P(EventStoreContract, SavesAllOfAnAggregateAfterTwoSavesWereRolledBack) {
  Order order = Order::place(id, "jane", 100);
  roll_back(*store, [&](Transaction& transaction) {
    save(transaction, order);
    order.note("first");
    save(transaction, order);
    order.ship("dhl");
  });
  EXPECT_EQ(standing(order), "version 0, 3 unsaved, 1 notes");
  order.note("second");
  save(*store, order);

  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 order.noted",
                          "3 order-1@3 order.shipped", "4 order-1@4 order.noted"));
  EXPECT_EQ(standing(order), "version 4, 0 unsaved, 2 notes");
}

TEST_P(EventStoreContract, LetsCopiesOfAnAggregateFollowTheTransaction) {
  Order order = Order::place(id, "jane", 100);
  std::optional<Order> rolled_back;
  std::optional<Order> committed;
  roll_back(*store, [&](Transaction& transaction) {
    save(transaction, order);
    rolled_back = order;
  });
  store->transact([&](Transaction& transaction) {
    save(transaction, order);
    committed = order;
  });

  EXPECT_EQ(standing(*rolled_back), "version 0, 1 unsaved, 0 notes");
  EXPECT_EQ(standing(*committed), "version 1, 0 unsaved, 0 notes");
  committed->note("first");
  save(*store, *committed);
  EXPECT_EQ(standing(*committed), "version 2, 0 unsaved, 1 notes");
}

TEST_P(EventStoreContract, RefusesAggregatesLoadedFromRolledBackEvents) {
  Order placed = Order::place(id, "jane", 100);
  save(*store, placed);
  std::optional<Order> before;
  std::optional<Order> after;
  roll_back(*store, [&](Transaction& transaction) {
    Repository<Order> orders{transaction};
    before = orders.load(id);
    Order order = orders.load(id);
    order.note("first");
    orders.save(order);
    after = orders.load(id);
    EXPECT_EQ(standing(*after), "version 2, 0 unsaved, 1 notes");
  });

  EXPECT_EQ(standing(*before), "version 1, 0 unsaved, 0 notes");
  EXPECT_EQ(standing(*after),
            "'order-1' was loaded inside a transaction that was rolled back; load it again");
  EXPECT_THROW(after->note("second"), UsageError);
  EXPECT_THROW(save(*store, *after), UsageError);
}

TEST_P(EventStoreContract, RefusesToSaveAnAggregateOfAnOpenTransactionElsewhere) {
  Order order = Order::place(id, "jane", 100);
  std::vector<std::string> refusals;
  std::atomic<bool> done{false};
  std::jthread elsewhere;
  roll_back(*store, [&](Transaction& transaction) {
    save(transaction, order);
    const auto save_copies = [&, copy = order]() mutable {
      copy.note("first");
      UnitOfWork unit{*store};
      unit.add(Order{copy});
      refusals.push_back(test::message_of<UsageError>([&] { save(*store, copy); }));
      refusals.push_back(test::message_of<UsageError>([&] { unit.commit(); }));
      done = true;
    };
    elsewhere = std::jthread{save_copies};
    EXPECT_TRUE(test::eventually([&] { return done.load(); }, std::chrono::seconds{5}));
  });
  elsewhere.join();

  EXPECT_THAT(refusals, Each("'order-1' was loaded or saved in a transaction that hasn't ended; "
                             "save it there, or afterwards"));
  save(*store, order);
  EXPECT_EQ(standing(order), "version 1, 0 unsaved, 0 notes");
}

TEST_P(EventStoreContract, MakesASavepointOfANestedTransaction) {
  std::vector<std::string> heard;
  const Subscription listening = store->on_commit([&](const CommitNotice& notice) {
    for (const StoredEvent& event : notice.events) heard.push_back(event.describe());
  });
  Order kept = Order::place(id, "jane", 100);
  Order lost = Order::place(Id<Order>::from("2"), "joe", 100);
  store->transact([&](Transaction& transaction) {
    save(transaction, kept);
    roll_back(transaction, [&](Transaction& inner) {
      kept.note("undone");
      save(inner, kept);
      save(inner, lost);
      EXPECT_THAT(lines(inner.read_stream(id.stream())), SizeIs(2));
    });
    EXPECT_EQ(standing(kept), "version 1, 1 unsaved, 1 notes");
    EXPECT_EQ(standing(lost), "version 0, 1 unsaved, 0 notes");
    EXPECT_THAT(lines(transaction.read_stream(id.stream())), SizeIs(1));
    transaction.transact([&](Transaction& inner) { save(inner, kept); });
  });
  append("order-1", {"order.noted"});

  EXPECT_EQ(standing(kept), "version 2, 0 unsaved, 1 notes");
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 order.noted",
                          "3 order-1@3 order.noted"));
  EXPECT_THAT(heard, ElementsAre("event 1 (order.placed v1, version 1 of 'order-1')",
                                 "event 2 (order.noted v1, version 2 of 'order-1')",
                                 "event 3 (order.noted v1, version 3 of 'order-1')"));
}

TEST_P(EventStoreContract, RollsASavepointBackWithTheOuterTransaction) {
  Order order = Order::place(id, "jane", 100);
  roll_back(*store, [&](Transaction& transaction) {
    transaction.transact([&](Transaction& inner) {
      save(inner, order);
      order.note("first");
      inner.transact([&](Transaction& innermost) { save(innermost, order); });
    });
    EXPECT_EQ(standing(order), "version 2, 0 unsaved, 1 notes");
  });

  EXPECT_EQ(standing(order), "version 0, 2 unsaved, 1 notes");
  EXPECT_THAT(lines(store->read_all()), IsEmpty());
}

TEST_P(EventStoreContract, KnowsWhereStreamsStandAfterASavepointWasUndone) {
  append("order-1", {"a"});
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"b", 1, true, "{}"};
  const auto expecting = [&](std::int64_t version) {
    return StreamAppend{order, ExpectedVersion::exactly(StreamVersion{version}), {&event, 1}};
  };
  store->transact([&](Transaction& transaction) {
    const StreamAppend second = expecting(1);
    const StreamAppend third = expecting(2);
    transaction.append({.streams = {&second, 1}});
    roll_back(transaction, [&](Transaction& inner) { inner.append({.streams = {&third, 1}}); });
    EXPECT_THROW(transaction.append({.streams = {&second, 1}}), ConcurrencyConflict);
    transaction.append({.streams = {&third, 1}});
  });

  std::vector<std::int64_t> published_before;
  for (const StoredEvent& stored : store->read_all()) {
    published_before.push_back(stored.published_before.value());
  }
  EXPECT_THAT(published_before, ElementsAre(0, 0, 2));
}

TEST_P(EventStoreContract, RollsBackAFailedUnitInATransactionThatContinues) {
  store->transact([&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    unit.add(Order::place(id, "jane", 100));
    unit.in_transaction([](Transaction&) { throw RollBack{}; });
    EXPECT_THROW(unit.commit({.append_id = "place-1"}), RollBack);
    EXPECT_THAT(lines(transaction.read_stream(id.stream())), IsEmpty());
    const NewEvent event{"a", 1, false, "{}"};
    const StreamAppend one{StreamId::parse("order-2"), ExpectedVersion::none(), {&event, 1}};
    EXPECT_FALSE(transaction.append({.streams = {&one, 1}, .append_id = "place-1"}).repeated);
  });

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 order-2@1 a"));
}

TEST_P(EventStoreContract, WritesNoSnapshotOfEventsThatASavepointRolledBack) {
  const StreamId order = StreamId::parse("order-1");
  append("order-1", {"a", "b"});
  store->save_snapshot(order, {StreamVersion{1}, GlobalSequence{1}, 1, "one"});
  const auto payload = [&] {
    return store->find_snapshot(order, StreamVersion::max(), GlobalSequence::max())->payload;
  };
  store->transact([&](Transaction& transaction) {
    roll_back(transaction, [&](Transaction& inner) {
      inner.save_snapshot(order, {StreamVersion{2}, GlobalSequence{2}, 1, "two"});
    });
    roll_back(transaction, [&](Transaction& inner) { inner.drop_snapshot(order); });
  });
  EXPECT_EQ(payload(), "one");
}

TEST_P(EventStoreContract, KeepsAnAggregateUsableAfterARepeatedSave) {
  Order order = Order::place(id, "jane", 100);
  Repository<Order> orders{*store};
  orders.save(order, {.append_id = "place-1"});
  Order again = Order::place(id, "jane", 100);

  EXPECT_TRUE(orders.save(again, {.append_id = "place-1"}).repeated);
  again.note("first");
  orders.save(again);

  EXPECT_EQ(standing(again), "version 2, 0 unsaved, 1 notes");
}

TEST_P(EventStoreContract, RefusesAnAggregateWhoseAppendIdStoredOtherEvents) {
  Order order = Order::place(id, "jane", 100);
  Repository<Order> orders{*store};
  orders.save(order, {.append_id = "place-1"});
  order.note("first");
  orders.save(order);
  const std::string refusal =
      "'order-1' was saved under an append id that had stored something else, and isn't what is "
      "stored; load it again";

  Order of_other_events = Order::place(id, "joe", 7);
  EXPECT_TRUE(orders.save(of_other_events, {.append_id = "place-1"}).repeated);
  Order of_a_later_version = orders.load(id);
  of_a_later_version.note("second");
  EXPECT_TRUE(orders.save(of_a_later_version, {.append_id = "place-1"}).repeated);

  EXPECT_EQ(standing(of_other_events), refusal);
  EXPECT_EQ(standing(of_a_later_version), refusal);
  EXPECT_THROW(of_other_events.note("x"), UsageError);
  EXPECT_THROW(orders.save(of_other_events), UsageError);
  EXPECT_THAT(lines(store->read_all()), SizeIs(2));
}

TEST_P(EventStoreContract, HonoursAnAppendIdWithoutEvents) {
  int calls = 0;
  const auto work = [&] {
    UnitOfWork unit{*store};
    unit.in_transaction([&](Transaction&) { ++calls; });
    return unit.commit({.append_id = "work-1"});
  };
  EXPECT_FALSE(work().repeated);
  EXPECT_TRUE(work().repeated);
  EXPECT_EQ(calls, 1);

  Order order = Order::place(id, "jane", 100);
  Repository<Order> orders{*store};
  orders.save(order);
  EXPECT_FALSE(orders.save(order, {.append_id = "nothing-1"}).repeated);
  EXPECT_TRUE(orders.save(order, {.append_id = "nothing-1"}).repeated);
  EXPECT_TRUE(UnitOfWork{*store}.commit({.append_id = "nothing-1"}).repeated);
  EXPECT_THROW(append("order-2", ExpectedVersion::none(), {{"a", 1, false, "{}"}}, "nothing-1"),
               UsageError);
  EXPECT_EQ(standing(order), "version 1, 0 unsaved, 0 notes");
}

TEST_P(EventStoreContract, TakesASaveWithoutEventsForARepeat) {
  Order order = Order::place(id, "jane", 100);
  Repository<Order> orders{*store};
  orders.save(order, {.append_id = "place-1"});
  Order loaded = orders.load(id);

  EXPECT_TRUE(orders.save(loaded, {.append_id = "place-1"}).repeated);
  EXPECT_EQ(standing(loaded), "version 1, 0 unsaved, 0 notes");
}

TEST_P(EventStoreContract, TakesPartOfAnAppendForAnotherOne) {
  const NewEvent event{"a", 1, false, "{}"};
  const StreamId one = StreamId::parse("order-1");
  const StreamId other = StreamId::parse("order-2");
  const std::vector<StreamAppend> both{{one, ExpectedVersion::none(), {&event, 1}},
                                       {other, ExpectedVersion::none(), {&event, 1}}};
  store->append({.streams = both, .append_id = "both"});

  EXPECT_TRUE(store->append({.streams = both, .append_id = "both"}).repeated);
  EXPECT_THROW(store->append({.streams = {both.data(), 1}, .append_id = "both"}), UsageError);
}

TEST_P(EventStoreContract, RefusesAUnitThatRecordsInsideItsTransaction) {
  UnitOfWork unit{*store};
  Order& order = unit.add(Order::place(id, "jane", 100));
  unit.in_transaction([&](Transaction&) { order.note("too late"); });

  EXPECT_THROW(unit.commit(), UsageError);
  EXPECT_THAT(lines(store->read_all()), IsEmpty());
}

}  // namespace
}  // namespace stela::outcome_contract
