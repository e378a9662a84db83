// Memory that runs out at any allocation of a write: others go on writing, and nothing in memory
// says what isn't so. At any of a read: what is stored isn't blamed for it.
#include "commit_queue.hpp"
#include "eventstore/transfer.hpp"
#include "support/counters.hpp"
#include "support/failing_memory.hpp"
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/testing/memory_store.hpp>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <thread>

namespace stela::out_of_memory_test {
namespace {

using test::FailNthAllocation;
using test::Memory;
using test::Order;
using test::Shortage;
using Counter = test::SnapshotCounter<1>;

/// True if the nth allocation of `write` was made, and failed.
template <class Write>
bool strikes(int nth, Write&& write, Memory memory = Memory::ours,
             Shortage shortage = Shortage::of_one) {
  {
    const FailNthAllocation failing{nth, memory, shortage};
    try {
      write();
    } catch (const std::bad_alloc&) {
    }
  }
  return FailNthAllocation::left() == 0;
}

/// What the aggregate says is what is stored of it, or it says that it has to be loaded again.
template <class A>
void expect_true(EventStore& store, const A& aggregate, std::int64_t recorded) {
  std::int64_t stored = 0;
  for (const StoredEvent& event : store.read_stream(aggregate.stream())) {
    stored = event.version.value();
  }
  try {
    EXPECT_EQ(aggregate.version().value(), stored);
    EXPECT_EQ(static_cast<std::int64_t>(aggregate.changes().size()), recorded - stored);
  } catch (const UsageError& e) {
    const std::string error = e.what();
    EXPECT_NE(error.find("load it again"), std::string::npos);
    if (stored < recorded) {
      EXPECT_EQ(error.find("was saved"), std::string::npos) << error;
    }
  }
}

TEST(OutOfMemory, InASaveCausesNoHangAndKeepsTheAggregateCorrect) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    auto store = sqlite::open_in_memory();
    const Subscription listening = store.on_commit([](const CommitNotice&) {});
    Order order = Order::place(Id<Order>::from("1"), "jane", 100);
    struck = strikes(nth, [&] { Repository<Order>{store}.save(order, {.append_id = "place-1"}); });

    expect_true(store, order, 1);
    const std::int64_t before = store.last_sequence().value();
    test::append(store, "order-2", {NewEvent{"order.shipped", 1, true, "{}"}});
    EXPECT_EQ(store.last_sequence().value(), before + 1);
    EXPECT_EQ(test::lines(store.read_all({.event_types = {"order.shipped"}})).size(), 1U);
  }
}

TEST(OutOfMemory, WhileAnOpenFileIsOpenedAgainEndsInAnException) {
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("store.db");
  auto first = sqlite::open(path);
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    struck = strikes(nth, [&] { (void)sqlite::open(path); });

    test::append(first, "order-1");
  }
}

TEST(OutOfMemory, InATransactionInMemoryAllowsLaterTransactions) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    testing::MemoryStore store;
    bool returned = false;
    struck = strikes(nth, [&] {
      store.transact([](Transaction& transaction) { test::append(transaction, "order-1"); });
      returned = true;
    });

    EXPECT_EQ(store.last_sequence().value(), returned ? 1 : 0);
    EXPECT_NO_THROW(test::append(store, "order-2"));
  }
}

/// Two stores of one file, the first of which runs short of SQLite's memory until a write has
/// ended.
class LastingShortage : public ::testing::Test {
 protected:
  struct Stores {
    explicit Stores(const std::string& path)
        : first{sqlite::open(path, {.busy_timeout = std::chrono::milliseconds{1}})},
          other{sqlite::open(path, {.busy_timeout = std::chrono::milliseconds{1}})},
          before{other.last_sequence().value()} {}
    std::int64_t appended() { return other.last_sequence().value() - before; }

    Store first;
    Store other;
    std::int64_t before;
  };

  /// From its nth allocation on; true if it made that many.
  template <class Write>
  static bool strikes_from(int nth, Write&& write) {
    return strikes(nth, write, Memory::sqlites, Shortage::of_all_from_there);
  }
  /// `test(nth, stores)` with new ones until it gives false.
  template <class Test>
  void try_each(Test&& test) {
    bool struck = true;
    for (int nth = 1; struck; ++nth) {
      SCOPED_TRACE(nth);
      Stores stores{dir_.file("store.db")};
      struck = test(nth, stores);
    }
  }

 private:
  const test::TempDir dir_ = test::TempDir::in_memory();
};

TEST_F(LastingShortage, InTheFirstAppendOfAStoreAllowsLaterWrites) {
  try_each([](int nth, Stores& stores) {
    const bool struck = strikes_from(nth, [&] { test::append(stores.first, "order-1"); });
    EXPECT_NO_THROW(test::append(stores.other, "order-2"));
    EXPECT_NO_THROW(test::append(stores.first, "order-3"));
    EXPECT_EQ(stores.appended(), struck ? 2 : 3);
    return struck;
  });
}

TEST_F(LastingShortage, InATransactionWithASavepointAllowsLaterWrites) {
  try_each([](int nth, Stores& stores) {
    const auto append = [](Transaction& transaction) { test::append(transaction, "order-1"); };
    const bool struck = strikes_from(nth, [&] {
      stores.first.transact([&](Transaction& transaction) { transaction.transact(append); });
    });
    EXPECT_NO_THROW(test::append(stores.other, "order-2"));
    EXPECT_NO_THROW(test::append(stores.first, "order-3"));
    return struck;
  });
}

TEST_F(LastingShortage, InASavepointCommitsNothingOfTheSavepoint) {
  try_each([](int nth, Stores& stores) {
    const auto append = [](Transaction& transaction) { test::append(transaction, "order-1", 3); };
    bool struck = true;
    bool committed = false;
    try {
      stores.first.transact([&](Transaction& transaction) {
        struck = strikes_from(nth, [&] { transaction.transact(append); });
        test::append(transaction, "order-2");
      });
      committed = true;
    } catch (const std::bad_alloc&) {
      // What couldn't be undone ended all of it.
    }
    EXPECT_EQ(stores.appended(), (committed ? 1 : 0) + (struck ? 0 : 3));
    EXPECT_NO_THROW(test::append(stores.other, "order-3"));
    return struck;
  });
}

TEST_F(LastingShortage, WhenEvenTheRollbackNeedsMemoryIsMendedByTheNextWrite) {
  const auto fail_with_a_table = [](Transaction& transaction) {
    // Such an end makes SQLite prepare every statement again.
    sqlite3_exec(sqlite::handle(transaction), "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
    throw std::runtime_error{"no"};
  };
  try_each([&](int nth, Stores& stores) {
    EXPECT_THROW(stores.first.transact(fail_with_a_table), std::runtime_error);
    const bool struck = strikes_from(nth, [&] { test::append(stores.first, "order-1"); });
    EXPECT_NO_THROW(test::append(stores.first, "order-2"));
    EXPECT_NO_THROW(test::append(stores.other, "order-3"));
    EXPECT_EQ(stores.appended(), struck ? 2 : 3);
    return struck;
  });
}

TEST_F(LastingShortage, InACommitThatMustBePreparedAgainLeavesNoDoubt) {
  try_each([](int nth, Stores& stores) {
    std::optional<FailNthAllocation> failing;
    const auto append = [&](Transaction& transaction) {
      test::append(transaction, "order-1");
      // Makes SQLite prepare every statement again.
      sqlite3_set_authorizer(
          sqlite::handle(transaction),
          [](void*, int, const char*, const char*, const char*, const char*) { return SQLITE_OK; },
          nullptr);
      failing.emplace(nth, Memory::sqlites, Shortage::of_all_from_there);
    };
    // Once, so that nothing has to be prepared for the first time.
    stores.first.transact([](Transaction& transaction) { test::append(transaction, "order-0"); });
    bool committed = false;
    try {
      stores.first.transact(append);
      committed = true;
    } catch (const std::bad_alloc&) {
    }
    failing.reset();
    const bool struck = FailNthAllocation::left() == 0;
    EXPECT_NO_THROW(test::append(stores.first, "order-2"));
    EXPECT_NO_THROW(test::append(stores.other, "order-3"));
    EXPECT_EQ(stores.appended(), committed ? 4 : 3);
    return struck;
  });
}

TEST(OutOfMemory, InTheLineOfWritersLeavesTheLineEmpty) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    // A store has written before anybody uses it, so that its line has the memory that it needs.
    CommitQueue queue;
    const auto carry_out = [&] {
      std::size_t members = 0;
      CommitQueue::Ticket ticket;
      queue.submit(ticket, [&](auto group) { members = group.size(); });
      return members;
    };
    struck = strikes(nth, carry_out);

    ASSERT_EQ(queue.size(), 0U);
    EXPECT_EQ(carry_out(), 1U);
  }
}

TEST(OutOfMemory, WhileRecordingKeepsStateAndChangesConsistent) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    Order order = Order::place(Id<Order>::from("1"), "jane", 100);
    struck = strikes(nth, [&] { order.note("longer than what a string keeps in itself"); });

    EXPECT_EQ(order.state().notes + 1, static_cast<std::int64_t>(order.changes().size()));
  }
}

TEST(OutOfMemory, InATransactionWithASavepointKeepsAggregatesCorrect) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    auto store = sqlite::open_in_memory();
    Order order = Order::place(Id<Order>::from("1"), "jane", 100);
    Counter counter{StreamId::parse("counter-1")};
    counter.add(1);
    struck = strikes(nth, [&] {
      store.transact([&](Transaction& transaction) {
        Repository<Order>{transaction}.save(order);
        transaction.transact([&](Transaction& inner) { Repository<Counter>{inner}.save(counter); });
      });
    });

    expect_true(store, order, 1);
    expect_true(store, counter, 1);
    test::append(store, "order-2");
  }
}

TEST(OutOfMemory, WhileReportingAListenersErrorBlocksNoUnsubscribe) {
  // simdjson allocates at its first use, where it may not throw.
  (void)StreamId::parse("order-1");
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    auto store = sqlite::open_in_memory();
    EventBus bus{store};
    const auto fail = [](const auto&) {
      throw std::runtime_error{"the warehouse can't be reached on this day"};
    };
    Subscription commits = store.on_commit(fail);
    Subscription events = bus.on_any(fail);
    struck = strikes(nth, [&] { test::append(store, "order-1"); });
    // On a thread that isn't the one that called the listeners: that wouldn't wait for itself.
    const std::jthread ending{[&] {
      commits.disconnect();
      events.disconnect();
    }};
  }
}

/// A stored order with a payload of several pages, and all that an event can have; and a counter
/// with a snapshot.
class StoredHistory : public ::testing::TestWithParam<Memory> {
 protected:
  StoredHistory() {
    const ContextScope scope{{.correlation_id = std::string(128, 'c'),
                              .causation_id = make_uuid(),
                              .actor = std::string(3000, 'a')}};
    auto store = sqlite::open(path_);
    Order order = Order::place(order_, std::string(3000, 'j'), 100);
    order.note(std::string(30'000, 'n'));
    Repository<Order>{store}.save(order);
    Counter counter{counter_};
    counter.add(1);
    counter.add(2);
    Repository<Counter>{store}.save(counter);
    // simdjson allocates at its first use, where it may not throw.
    (void)Repository<Order>{store}.load(order_);
  }

  /// Tries `read` on a new store with each of its allocations failing: anything but std::bad_alloc
  /// is thrown on.
  template <class Read>
  void try_each(Read&& read) {
    bool struck = true;
    for (int nth = 1; struck; ++nth) {
      SCOPED_TRACE(nth);
      auto store = sqlite::open(path_);
      ASSERT_NO_THROW(struck = strikes(
                          nth, [&] { read(store); }, GetParam()));
      ASSERT_NO_THROW(read(store)) << "there is memory again";
    }
  }

  const test::TempDir dir_ = test::TempDir::in_memory();
  const std::string path_ = dir_.file("store.db");
  const Id<Order> order_ = Id<Order>::from("1");
  const Id<Counter> counter_ = Id<Counter>::from("1");
};

TEST_P(StoredHistory, IsNotReportedAsDamagedWhenMemoryIsShort) {
  try_each([&](Store& store) {
    for (const StoredEvent& event : store.read_all()) (void)event.context();
    (void)Repository<Order>{store}.load(order_);
  });
}

TEST_P(StoredHistory, KeepsItsSnapshotWhenMemoryIsShort) {
  try_each([&](Store& store) {
    EXPECT_EQ(Repository<Counter>{store}.load(counter_).state().applied, 0);
  });
}

/// Only with memory of ours: SQLite's own check calls a page damaged that it has no memory for.
class CheckedHistory : public StoredHistory {};

TEST_P(CheckedHistory, IsNotFoundDamagedWhenMemoryIsShort) {
  try_each([](Store& store) {
    StoreOperations{store}.verify(
        [](const Problem& problem) { throw std::runtime_error{to_string(problem)}; });
  });
}

INSTANTIATE_TEST_SUITE_P(OutOfMemory, CheckedHistory, ::testing::Values(Memory::ours));

INSTANTIATE_TEST_SUITE_P(OutOfMemory, StoredHistory,
                         ::testing::Values(Memory::ours, Memory::sqlites), [](const auto& memory) {
                           return memory.param == Memory::ours ? "Ours" : "Sqlites";
                         });

std::string exported_order() {
  auto store = sqlite::open_in_memory();
  const Context context{.actor = "ada"};
  const ContextScope scope{context};
  test::append(store, "order-1", {NewEvent{"order.placed", 1, true, R"({"lines":[1,2,3]})"}});
  return test::export_of(store);
}

TEST(OutOfMemory, InAnImportIsNoBadLine) {
  const std::string text = exported_order();
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    auto store = sqlite::open_in_memory();
    std::istringstream in{text};
    struck = strikes(nth, [&] { import_events(store, in); });
  }
}

/// Takes what is written without asking for memory.
class FixedBuffer : public std::streambuf {
 public:
  FixedBuffer() { setp(text_.data(), text_.data() + text_.size()); }
  std::string text() const { return {pbase(), pptr()}; }

 private:
  std::array<char, 4096> text_{};
};

TEST(OutOfMemory, InAnExportMakesNoOtherLine) {
  const std::string text = exported_order();
  auto store = sqlite::open_in_memory();
  test::import_text(store, text);
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    FixedBuffer buffer;
    std::ostream out{&buffer};
    bool returned = false;
    struck = strikes(nth, [&] {
      export_events(store, out);
      returned = true;
    });
    EXPECT_EQ(returned ? buffer.text() : text, text);
  }
}

TEST(OutOfMemory, InAUnitOfWorkStoresAllOfItOrNothing) {
  bool struck = true;
  for (int nth = 1; struck; ++nth) {
    SCOPED_TRACE(nth);
    auto store = sqlite::open_in_memory();
    UnitOfWork unit{store};
    unit.add(Order::place(Id<Order>::from("1"), "jane", 100));
    unit.add(Counter{StreamId::parse("counter-1")}).add(1);
    bool returned = false;
    struck = strikes(nth, [&] {
      unit.commit();
      returned = true;
    });

    EXPECT_EQ(store.last_sequence().value(), returned ? 2 : 0);
    test::append(store, "order-2");
  }
}

}  // namespace
}  // namespace stela::out_of_memory_test
