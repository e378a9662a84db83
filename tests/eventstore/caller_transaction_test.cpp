// The caller's own SQL in the same transaction as events.
#include "support/counters.hpp"
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/raw_sqlite.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stela::caller_transaction_test {
namespace {

using test::append;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CallerTransaction : public ::testing::Test {
 protected:
  CallerTransaction() {
    store->transact([](Transaction& transaction) {
      sql(transaction).run("CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER) STRICT");
    });
  }

  static test::RawSqlite sql(Transaction& transaction) {
    return test::RawSqlite{sqlite::handle(transaction)};
  }
  void sql_of_its_own(const std::string& statement) {
    store->transact([&](Transaction& transaction) { sql(transaction).run(statement); });
  }
  std::vector<std::string> orders() {
    return test::RawSqlite{path}.rows("SELECT id, total FROM orders ORDER BY id");
  }
  std::vector<std::string> events() { return test::lines(store->read_all()); }
  std::string error_of(FunctionRef<void(Transaction&)> work) {
    return message_of<UsageError>([&] { store->transact(work); });
  }

  /// A statement that is in the middle of its rows.
  static sqlite3_stmt* leave_running(Transaction& transaction) {
    sqlite3_stmt* running = nullptr;
    sqlite3_prepare_v2(sqlite::handle(transaction), "SELECT 1 FROM events", -1, &running, nullptr);
    EXPECT_EQ(sqlite3_step(running), SQLITE_ROW);
    return running;
  }
  /// A commit that a connection doesn't see which still reads an older state.
  void append_elsewhere() const { append(*test::open_store(path), "order-1"); }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store = test::open_store(path);
};

TEST_F(CallerTransaction, CommitsRowsAndEventsTogether) {
  store->transact([&](Transaction& transaction) {
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
    append(transaction, "order-1");
  });

  EXPECT_THAT(orders(), ElementsAre("1|100"));
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, RollsRowsAndEventsBackTogether) {
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
    append(transaction, "order-1");
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);

  EXPECT_THAT(orders(), IsEmpty());
  EXPECT_THAT(events(), IsEmpty());
  append(*store, "order-1");
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, RollsRowsBackWithAnAppendThatLosesARace) {
  append(*store, "order-1");
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"noted", 1, false, "{}"};
  const StreamAppend lost{order, ExpectedVersion::none(), {&event, 1}};

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
    transaction.append({.streams = {&lost, 1}});
  }),
               ConcurrencyConflict);

  EXPECT_THAT(orders(), IsEmpty());
}

TEST_F(CallerTransaction, RollsEventsBackWithRefusedRows) {
  const auto place = [&](Transaction& transaction) {
    append(transaction, "order-1");
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
  };
  store->transact(place);

  EXPECT_THROW(store->transact(place), std::runtime_error);

  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, CarriesAUnitOfWork) {
  const auto id = Id<test::Order>::from("1");
  const auto place = [&](bool fails) {
    UnitOfWork unit{*store};
    unit.add(test::Order::place(id, "jane", 100));
    unit.in_transaction([&](Transaction& transaction) {
      sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
      if (fails) throw std::runtime_error{"no"};
    });
    unit.commit();
  };

  EXPECT_THROW(place(true), std::runtime_error);
  EXPECT_THAT(orders(), IsEmpty());
  EXPECT_FALSE(Repository<test::Order>{*store}.find(id));

  place(false);
  EXPECT_THAT(orders(), ElementsAre("1|100"));
  EXPECT_EQ(Repository<test::Order>{*store}.load(id).state().total_cents, 100);
}

TEST_F(CallerTransaction, CarriesARepositoryOfTheCallersTransaction) {
  const auto id = Id<test::Order>::from("1");
  store->transact([&](Transaction& transaction) {
    Repository<test::Order> repository{transaction};
    auto order = test::Order::place(id, "jane", 100);
    repository.save(order);
    test::Order again = repository.load(id);
    again.ship("dhl");
    repository.save(again);
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
  });

  EXPECT_EQ(Repository<test::Order>{*store}.load(id).version(), StreamVersion{2});
  EXPECT_THAT(orders(), ElementsAre("1|100"));
}

TEST_F(CallerTransaction, IsRolledBackWhenTheCallerCommits) {
  std::string refused;
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                append(transaction, "order-1");
                test::RawSqlite user = sql(transaction);
                user.run("INSERT INTO orders VALUES ('1', 100)");
                refused = message_of<std::runtime_error>([&] { user.run("COMMIT"); });
              }),
              HasSubstr("ended the transaction that it was called in; all of it is rolled back"));

  EXPECT_THAT(refused, HasSubstr("constraint failed"));
  EXPECT_THAT(orders(), IsEmpty());
  append(*store, "order-1");
  append(*store, "stock-1", {{"counted", 1, true, "{}"}});
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}", "2 stock-1@1 counted {}"));
}

TEST_F(CallerTransaction, LeavesSavedAggregatesUnchangedWhenTheCallerCommits) {
  auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    Repository<test::Order>{transaction}.save(order);
    sql(transaction).run("COMMIT");
  }),
               std::runtime_error);

  EXPECT_EQ(order.version(), StreamVersion{});
  Repository<test::Order>{*store}.save(order);
  EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(CallerTransaction, IsRolledBackWhenTheCallerCommitsAndBeginsAnother) {
  auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                Repository<test::Order>{transaction}.save(order);
                test::RawSqlite user = sql(transaction);
                EXPECT_THROW(user.run("COMMIT"), std::runtime_error);
                user.run("BEGIN");
              }),
              HasSubstr("the work ended the transaction"));

  EXPECT_THAT(events(), IsEmpty());
  EXPECT_EQ(order.version(), StreamVersion{});
}

TEST_F(CallerTransaction, IsRolledBackInsideAnotherWhenTheCallerCommitsAndThenFails) {
  auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
  struct Failed {};
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    transaction.transact([&](Transaction& inner) { Repository<test::Order>{inner}.save(order); });
    test::RawSqlite user = sql(transaction);
    EXPECT_THROW(user.run("COMMIT"), std::runtime_error);
    user.run("BEGIN");
    throw Failed{};
  }),
               Failed);

  EXPECT_THAT(events(), IsEmpty());
  EXPECT_EQ(order.version(), StreamVersion{});
}

/// The header forbids it: then Stela can't keep the work from committing, and says so.
TEST_F(CallerTransaction, IsInDoubtWhenTheCallerReplacesTheHooksAndCommits) {
  auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                Repository<test::Order>{transaction}.save(order);
                sqlite3_commit_hook(sqlite::handle(transaction), nullptr, nullptr);
                sql(transaction).run("COMMIT");
              }),
              HasSubstr("it set a commit or rollback hook"));

  EXPECT_THAT(events(), SizeIs(1));
  EXPECT_THAT(message_of<UsageError>([&] { (void)order.version(); }),
              HasSubstr("in doubt; load it again"));
}

TEST_F(CallerTransaction, WritesSnapshotsAfterTheCommitAndOnlyLogsFailures) {
  using Counter = test::SnapshotCounter<1>;
  test::RecordingLog log;
  store = test::open_store(path, {.busy_timeout = std::chrono::milliseconds{0}, .log = &log});
  test::RawSqlite other{path};
  int heard = 0;
  const Subscription listening = store->on_commit([&](const CommitNotice&) {
    ++heard;
    other.run("BEGIN IMMEDIATE");
  });
  Counter counter{StreamId::parse("counter-1")};
  counter.add(1);

  EXPECT_NO_THROW(store->transact(
      [&](Transaction& transaction) { Repository<Counter>{transaction}.save(counter); }));

  EXPECT_EQ(heard, 1);
  EXPECT_EQ(counter.version(), StreamVersion{1});
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("snapshot.failed stream=counter-1")));
  other.run("ROLLBACK");
}

TEST_F(CallerTransaction, IsRefusedWhenTheCallerRollsBack) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                append(transaction, "order-1", {{"shipped", 1, true, "{}"}});
                sql(transaction).run("ROLLBACK");
              }),
              HasSubstr("the work ended the transaction"));

  append(*store, "order-1", {{"shipped", 1, true, "{}"}});
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 shipped {}"));
}

TEST_F(CallerTransaction, KeepsNoWritesAfterAStatementThatRolledBack) {
  sql_of_its_own("INSERT INTO orders VALUES ('1', 100)");
  std::string refused;
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                append(transaction, "order-1");
                test::RawSqlite user = sql(transaction);
                EXPECT_THROW(user.run("INSERT OR ROLLBACK INTO orders VALUES ('1', 200)"),
                             std::runtime_error);
                refused = message_of<std::runtime_error>(
                    [&] { user.run("INSERT INTO orders VALUES ('2', 200)"); });
              }),
              HasSubstr("the work ended the transaction"));

  EXPECT_THAT(refused, HasSubstr("constraint failed"));
  EXPECT_THAT(orders(), ElementsAre("1|100"));
  EXPECT_THAT(events(), IsEmpty());
  sql_of_its_own("INSERT INTO orders VALUES ('3', 300)");
  EXPECT_THAT(orders(), ElementsAre("1|100", "3|300"));
}

TEST_F(CallerTransaction, KeepsNoWritesAfterACallersCommit) {
  error_of([&](Transaction& transaction) {
    test::RawSqlite user = sql(transaction);
    user.run("INSERT INTO orders VALUES ('1', 100)");
    EXPECT_THROW(user.run("COMMIT"), std::runtime_error);
    EXPECT_THROW(user.run("INSERT INTO orders VALUES ('2', 200)"), std::runtime_error);
  });

  EXPECT_THAT(orders(), IsEmpty());
}

TEST_F(CallerTransaction, LeavesNoSettingBehindThatStopsTheStoreOrItsGuards) {
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    sql(transaction)
        .run(
            "PRAGMA ignore_check_constraints = ON; PRAGMA recursive_triggers = OFF; "
            "PRAGMA writable_schema = ON; PRAGMA query_only = ON");
  });
  append(*store, "order-1");

  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}", "2 order-1@2 noted {}"));
  store->transact([&](Transaction& transaction) {
    test::RawSqlite user = sql(transaction);
    EXPECT_EQ(user.integer("PRAGMA ignore_check_constraints"), 0);
    EXPECT_EQ(user.integer("PRAGMA recursive_triggers"), 1);
    EXPECT_EQ(user.integer("PRAGMA writable_schema"), 0);
  });
}

/// There SQLite lets it be changed, and all that came later would go unsynced.
TEST_F(CallerTransaction, LeavesNoSettingBehindThatItMadeAfterItsEnd) {
  for (const char* const setting : {"PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF"}) {
    EXPECT_THAT(error_of([&](Transaction& transaction) {
                  test::RawSqlite user = sql(transaction);
                  user.run("ROLLBACK");
                  user.run(setting);
                }),
                HasSubstr("ended the transaction"));
  }

  store->transact([&](Transaction& transaction) {
    test::RawSqlite user = sql(transaction);
    EXPECT_EQ(user.integer("PRAGMA synchronous"), 2);
    EXPECT_EQ(user.integer("PRAGMA foreign_keys"), 1);
  });
}

TEST_F(CallerTransaction, LeavesNoHookBehindThatRefusesItsEnd) {
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    sqlite3_progress_handler(
        sqlite::handle(transaction), 1, [](void*) { return 1; }, nullptr);
  });
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    sqlite3_set_authorizer(
        sqlite::handle(transaction),
        [](void*, int, const char*, const char*, const char*, const char*) { return SQLITE_DENY; },
        nullptr);
  });
  append(*store, "order-1");

  EXPECT_THAT(events(), SizeIs(3));
}

TEST_F(CallerTransaction, IsRefusedIfItReleasesASavepointOfStelas) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                transaction.transact([&](Transaction& inner) {
                  append(inner, "order-1");
                  sql(inner).run("RELEASE stela_savepoint");
                });
              }),
              HasSubstr("released a savepoint of Stela's"));

  append(*store, "order-1");
  EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(CallerTransaction, LeavesNoWaitLockOrCheckpointBehind) {
  auto other = sqlite::open(sqlite::path(*store));
  EXPECT_EQ(other.last_sequence(), GlobalSequence{});
  store->transact([&](Transaction& transaction) {
    sql(transaction)
        .run(
            "PRAGMA busy_timeout = 7; PRAGMA wal_autocheckpoint = 1; "
            "PRAGMA locking_mode = EXCLUSIVE");
  });
  EXPECT_NO_THROW(append(*store, "order-1"));

  store->transact([&](Transaction& transaction) {
    test::RawSqlite user = sql(transaction);
    EXPECT_EQ(user.integer("PRAGMA busy_timeout"), sqlite::Options{}.busy_timeout.count());
    EXPECT_EQ(user.integer("PRAGMA wal_autocheckpoint"), 0);
    EXPECT_EQ(user.integer("SELECT locking_mode = 'normal' FROM pragma_locking_mode"), 1);
  });
}

TEST_F(CallerTransaction, IsRefusedWhenTheCallerRollsBackAndBeginsAnother) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                sql(transaction).run("ROLLBACK; BEGIN; INSERT INTO orders VALUES ('1', 100)");
              }),
              HasSubstr("the work ended the transaction"));

  EXPECT_THAT(orders(), IsEmpty());
}

TEST_F(CallerTransaction, RefusesAnAppendAfterItsEnd) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                sql(transaction).run("ROLLBACK");
                append(transaction, "order-1");
              }),
              HasSubstr("the work ended the transaction"));
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(CallerTransaction, UndoesWhatACallersSavepointUndoesOfItsOwn) {
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    sql(transaction).run("SAVEPOINT mine; INSERT INTO orders VALUES ('1', 100); ROLLBACK TO mine");
    append(transaction, "order-1");
  });
  EXPECT_THAT(orders(), IsEmpty());
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}", "2 order-1@2 noted {}"));
}

TEST_F(CallerTransaction, IsRefusedWhenASavepointUndoesAnAppend) {
  const auto undo = [&](Transaction& transaction) {
    sql(transaction).run("SAVEPOINT mine");
    append(transaction, "order-1");
    sql(transaction).run("ROLLBACK TO mine");
  };
  EXPECT_THAT(error_of(undo), HasSubstr("rolled back to a savepoint from before an append"));
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                undo(transaction);
                append(transaction, "order-1");
              }),
              HasSubstr("rolled back to a savepoint from before an append"));

  append(*store, "order-1");
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, ContinuesAfterAFailedAppend) {
  // The stream is touched, touched again by an append that fails, and looked up by one more: what
  // the writer remembers of it must go with the transaction.
  const StreamId order = StreamId::parse("order-1");
  const StreamId stock = StreamId::parse("stock-1");
  append(*store, "stock-1");
  const NewEvent event{"noted", 1, false, "{}"};
  const std::vector<StreamAppend> lost{{order, ExpectedVersion::any(), {&event, 1}},
                                       {stock, ExpectedVersion::none(), {&event, 1}}};
  const StreamAppend conflicting{order, ExpectedVersion::none(), {&event, 1}};

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    EXPECT_THROW(transaction.append({.streams = lost}), ConcurrencyConflict);
    transaction.append({.streams = {&conflicting, 1}});
  }),
               ConcurrencyConflict);

  append(*store, "order-1");
  EXPECT_THAT(events(), ElementsAre("1 stock-1@1 noted {}", "2 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, CannotChangeAppendedEvents) {
  append(*store, "order-1");
  const std::vector<std::string> statements{
      "UPDATE events SET payload = x''",
      "DELETE FROM events",
      "UPDATE streams SET name = 'order-2'",
      "DELETE FROM streams",
      "UPDATE event_kinds SET type = 'x'",
      "DELETE FROM event_kinds",
      "REPLACE INTO events SELECT sequence, stream, version, kind, recorded_at, event_id, "
      "correlation_id, causation_id, published_before, metadata, checksum, x'' FROM events",
      "REPLACE INTO events SELECT sequence + 1, stream, version, kind, recorded_at, event_id, "
      "correlation_id, causation_id, published_before, metadata, checksum, x'' FROM events",
      "REPLACE INTO streams SELECT stream, 'order-2' FROM streams",
      "REPLACE INTO event_kinds SELECT kind, category, 'x', version, publishes FROM event_kinds"};
  for (const std::string& statement : statements) {
    EXPECT_THAT(
        message_of<std::runtime_error>([&] {
          store->transact([&](Transaction& transaction) { sql(transaction).run(statement); });
        }),
        HasSubstr("append-only"))
        << statement;
  }
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, IsRefusedWhenItWritesEventsByHand) {
  append(*store, "order-1");
  EXPECT_THAT(
      error_of([&](Transaction& transaction) {
        sql(transaction)
            .run(
                "INSERT INTO events SELECT 2, stream, 2, kind, recorded_at, event_id, "
                "correlation_id, causation_id, published_before, metadata, checksum, payload "
                "FROM events WHERE sequence = 1");
      }),
      HasSubstr("wrote to the events table itself"));
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(CallerTransaction, IsRefusedWhenItLeavesADeferredKeyBroken) {
  sql_of_its_own("CREATE TABLE items (of TEXT REFERENCES orders DEFERRABLE INITIALLY DEFERRED)");
  const auto add_item = [&](Transaction& transaction) {
    append(transaction, "order-1");
    sql(transaction).run("INSERT INTO items VALUES ('1')");
  };

  EXPECT_THAT(message_of<ConstraintViolated>([&] { store->transact(add_item); }),
              HasSubstr("a deferred FOREIGN KEY constraint fails"));

  EXPECT_THAT(events(), IsEmpty());
  store->transact([&](Transaction& transaction) {
    add_item(transaction);
    sql(transaction).run("INSERT INTO orders VALUES ('1', 100)");
  });
  EXPECT_THAT(orders(), ElementsAre("1|100"));
}

TEST_F(CallerTransaction, IsRefusedWhenAStatementIsLeftRunning) {
  append(*store, "order-1", 3);
  sqlite3_stmt* running = nullptr;
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                running = leave_running(transaction);
                append(transaction, "order-1");
              }),
              HasSubstr("left a statement running: SELECT 1 FROM events"));

  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{4});
  append_elsewhere();
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{6});
  sqlite3_finalize(running);
}

TEST_F(CallerTransaction, EndsAStatementThatFailedWorkLeftRunning) {
  append(*store, "order-1", 3);
  sqlite3_stmt* running = nullptr;
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    running = leave_running(transaction);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);

  append_elsewhere();
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{5});
  sqlite3_finalize(running);
}

TEST_F(CallerTransaction, IsRefusedWhenABlobIsLeftOpen) {
  append(*store, "order-1", 3);
  sqlite3_blob* blob = nullptr;
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                ASSERT_EQ(sqlite3_blob_open(sqlite::handle(transaction), "main", "events",
                                            "payload", 1, 0, &blob),
                          SQLITE_OK);
                append(transaction, "order-1");
              }),
              HasSubstr("left a blob open"));
  sqlite3_blob_close(blob);

  append_elsewhere();
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{5});
}

TEST_F(CallerTransaction, LendsNoConnectionOfAnotherStore) {
  testing::MemoryStore other;
  EXPECT_THAT(message_of<UsageError>([&] {
                other.transact([](Transaction& transaction) { (void)sqlite::handle(transaction); });
              }),
              HasSubstr("isn't one of an SQLite store"));
}

}  // namespace
}  // namespace stela::caller_transaction_test
