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

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::caller_transaction_test {
namespace {

using test::append;
using test::message_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// What ends the transaction on the connection that the work is lent.
constexpr std::array<const char*, 2> commits{"COMMIT", "COMMIT; BEGIN"};
constexpr std::array<const char*, 3> rolls_back{
    "ROLLBACK", "ROLLBACK; BEGIN", "INSERT OR ROLLBACK INTO orders VALUES ('1', 1), ('1', 2)"};

void end_by(Transaction& transaction, const char* end) {
  sqlite3_exec(sqlite::handle(transaction), end, nullptr, nullptr, nullptr);
}

/// A participant that does so in each append.
class Ending final : public TransactionParticipant {
 public:
  explicit Ending(const char* end) : end_{end} {}
  std::string_view name() const noexcept override { return "ending"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction& transaction, std::span<const StoredEvent>) override {
    end_by(transaction, end_);
  }

 private:
  const char* end_;
};

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

TEST_F(CallerTransaction, IsInDoubtIfTheCallerCommits) {
  for (const char* const end : commits) {
    auto order = test::Order::place(Id<test::Order>::generate(), "jane", 100);
    EXPECT_THAT(error_of([&](Transaction& transaction) {
                  Repository<test::Order>{transaction}.save(order);
                  end_by(transaction, end);
                }),
                HasSubstr("ended the transaction that it was called in; what it did before that "
                          "may be committed"))
        << end;

    EXPECT_THAT(message_of<UsageError>([&] { (void)order.version(); }), HasSubstr("in doubt"));
  }
  EXPECT_THAT(events(), SizeIs(2));
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{3});
}

TEST_F(CallerTransaction, IsInDoubtIfTheCallerCommitsWithHooksOfItsOwn) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                append(transaction, "order-1");
                sqlite3_commit_hook(sqlite::handle(transaction), nullptr, nullptr);
                end_by(transaction, "COMMIT");
              }),
              HasSubstr("may be committed"));

  EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(CallerTransaction, IsInDoubtIfTheCallerCommitsBelowASavepointWhateverIsThrownAfterThat) {
  for (const char* const end : commits) {
    for (const bool is_caught : {false, true}) {
      auto order = test::Order::place(Id<test::Order>::generate(), "jane", 100);
      const auto part = [&](Transaction& inner) {
        Repository<test::Order>{inner}.save(order);
        end_by(inner, end);
        throw StoreBusy{"try again"};
      };
      EXPECT_THAT(error_of([&](Transaction& outer) {
                    try {
                      outer.transact(part);
                    } catch (const UsageError&) {
                      if (!is_caught) throw;
                    }
                    append(outer, "order-late");
                  }),
                  HasSubstr("may be committed"))
          << end;
      EXPECT_THAT(message_of<UsageError>([&] { (void)order.version(); }), HasSubstr("in doubt"));
    }
  }
  EXPECT_THAT(events(), AllOf(SizeIs(4), Not(Contains(HasSubstr("order-late")))));
}

TEST_F(CallerTransaction, IsRolledBackIfTheCallerRollsBack) {
  auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
  for (const char* const end : rolls_back) {
    EXPECT_THAT(error_of([&](Transaction& transaction) {
                  Repository<test::Order>{transaction}.save(order);
                  end_by(transaction, end);
                }),
                HasSubstr("ended the transaction that it was called in; what it did before that "
                          "is rolled back"))
        << end;
    EXPECT_EQ(order.version(), StreamVersion{});
  }
  EXPECT_THAT(events(), IsEmpty());
  Repository<test::Order>{*store}.save(order);
  EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(CallerTransaction, IsNotTakenForCommittedByWhatIsWrittenAfterItsEnd) {
  EXPECT_THAT(error_of([&](Transaction& transaction) {
                append(transaction, "order-1");
                end_by(transaction, "ROLLBACK; INSERT INTO orders VALUES ('1', 100)");
              }),
              HasSubstr("is rolled back"));

  EXPECT_THAT(events(), IsEmpty());
  EXPECT_THAT(orders(), ElementsAre("1|100"));
}

TEST_F(CallerTransaction, OfAParticipantIsCheckedBeforeAnythingElseIsWritten) {
  Ending participant{"ROLLBACK"};
  store->attach(participant);
  EXPECT_THAT(message_of<UsageError>([&] {
                append(*store, "order-1", {{"noted", 1, false, "{}"}}, "once");
              }),
              HasSubstr("is rolled back"));
  store->detach(participant);

  EXPECT_EQ(test::RawSqlite{path}.integer("SELECT count(*) FROM append_ids"), 0);
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

TEST_F(CallerTransaction, LendsNoConnectionOfAnotherStore) {
  testing::MemoryStore other;
  EXPECT_THAT(message_of<UsageError>([&] {
                other.transact([](Transaction& transaction) { (void)sqlite::handle(transaction); });
              }),
              HasSubstr("isn't one of an SQLite store"));
}

}  // namespace
}  // namespace stela::caller_transaction_test
