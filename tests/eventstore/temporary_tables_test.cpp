// Temporary tables, views and triggers that the caller's own SQL leaves on the connection.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/sqlite_handle.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::temporary_tables_test {
namespace {

using test::append;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A participant that runs SQL of its own in each append.
class Interfering final : public TransactionParticipant {
 public:
  explicit Interfering(std::string sql) : sql_{std::move(sql)} {}
  std::string_view name() const noexcept override { return "interfering"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction& transaction, std::span<const StoredEvent>) override {
    if (!sql_.empty()) test::RawSqlite{sqlite::handle(transaction)}.run(sql_);
  }
  void rest() { sql_.clear(); }

 private:
  std::string sql_;
};

class TemporaryTables : public ::testing::Test {
 protected:
  TemporaryTables() {
    append(*store, "order-1");
    run("CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER) STRICT");
  }

  void run(const std::string& sql) {
    store->transact(
        [&](Transaction& transaction) { test::RawSqlite{sqlite::handle(transaction)}.run(sql); });
  }
  std::string refusal_of(const std::string& sql) {
    return message_of<UsageError>([&] { run(sql); });
  }
  /// What is appended now, as whoever opens the file later reads it.
  std::vector<std::string> events_after_another_append() {
    EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{2});
    store.reset();
    store = test::open_store(path);
    return test::lines(store->read_all());
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store = test::open_store(path);
};

struct Left {
  std::string name;
  std::string sql;
  std::string what;
};

class LeftTemporaryObject : public TemporaryTables, public ::testing::WithParamInterface<Left> {};

TEST_P(LeftTemporaryObject, IsRefusedAndGone) {
  const std::string refusal = refusal_of(GetParam().sql);

  EXPECT_THAT(refusal, HasSubstr("left a temporary " + GetParam().what));
  EXPECT_THAT(refusal, HasSubstr("drop it"));
  EXPECT_THAT(events_after_another_append(),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 noted {}"));
}

INSTANTIATE_TEST_SUITE_P(
    All, LeftTemporaryObject,
    ::testing::Values(
        Left{"Events", "CREATE TEMP TABLE events AS SELECT * FROM events", "table 'events'"},
        Left{"EventsOfOtherCase", "CREATE TEMP TABLE Events AS SELECT * FROM events",
             "table 'Events'"},
        Left{"StreamsOfOtherColumns", "CREATE TEMP TABLE streams (id INTEGER, title TEXT)",
             "table 'streams'"},
        Left{"View", "CREATE TEMP VIEW events AS SELECT * FROM main.events LIMIT 0",
             "view 'events'"},
        Left{"Renamed", "CREATE TEMP TABLE mine (a); ALTER TABLE mine RENAME TO append_ids",
             "table 'append_ids'"},
        Left{"OfTheApplication", "CREATE TEMP TABLE orders AS SELECT * FROM orders",
             "table 'orders'"},
        Left{"OfAModuleThatComesLater", "CREATE TEMP TABLE Outbox_messages (partition INTEGER)",
             "table 'Outbox_messages'"},
        Left{"OfProjectionsThatComeLater", "CREATE TEMP TABLE projections (name TEXT)",
             "table 'projections'"},
        Left{"Trigger",
             "CREATE TEMP TRIGGER swallow BEFORE INSERT ON main.events"
             " BEGIN SELECT RAISE(IGNORE); END",
             "trigger 'swallow'"}),
    [](const auto& left) { return left.param.name; });

TEST_F(TemporaryTables, AreGoneIfTheWorkTriesToCommitThemItself) {
  EXPECT_THAT(message_of<UsageError>([&] {
                store->transact([](Transaction& transaction) {
                  append(transaction, "order-1");
                  test::RawSqlite user{sqlite::handle(transaction)};
                  user.run("CREATE TEMP TABLE events AS SELECT * FROM events");
                  EXPECT_THROW(user.run("COMMIT"), std::runtime_error);
                });
              }),
              HasSubstr("ended the transaction"));

  EXPECT_THAT(events_after_another_append(),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 noted {}"));
}

TEST_F(TemporaryTables, TakeNoAppendThatIsMadeBeforeTheyAreDropped) {
  EXPECT_THAT(message_of<UsageError>([&] {
                store->transact([](Transaction& transaction) {
                  test::RawSqlite user{sqlite::handle(transaction)};
                  user.run("CREATE TEMP TABLE append_ids AS SELECT * FROM append_ids");
                  append(transaction, "order-1", {{"noted", 1, false, "{}"}}, "once");
                  user.run("DROP TABLE temp.append_ids");
                });
              }),
              HasSubstr("left a temporary table 'append_ids'"));

  EXPECT_THAT(test::lines(store->read_all()), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(TemporaryTables, MayHaveNamesOfTheDatabaseUntilTheWorkEnds) {
  run("CREATE TEMP TABLE orders AS SELECT * FROM orders; DROP TABLE temp.orders");

  EXPECT_THAT(events_after_another_append(),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 noted {}"));
}

TEST_F(TemporaryTables, OfOtherNamesStayUntilTheStoreIsClosed) {
  run("CREATE TEMP TABLE scratch (id INTEGER PRIMARY KEY AUTOINCREMENT);"
      "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT);"
      "CREATE TEMP TRIGGER noted AFTER INSERT ON scratch BEGIN SELECT 1; END");
  run("INSERT INTO scratch DEFAULT VALUES");

  store->transact([](Transaction& transaction) {
    EXPECT_EQ(test::RawSqlite{sqlite::handle(transaction)}.integer("SELECT id FROM scratch"), 1);
  });
}

TEST_F(TemporaryTables, OfAParticipantAreRefused) {
  Interfering participant{"CREATE TEMP TABLE events AS SELECT * FROM events"};
  store->attach(participant);

  EXPECT_THAT(message_of<UsageError>([&] { append(*store, "order-1"); }),
              HasSubstr("left a temporary table 'events'"));
  participant.rest();
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{2});

  EXPECT_THAT(test::RawSqlite{path}.rows("SELECT sequence FROM events"), ElementsAre("1", "2"));
  store->detach(participant);
}

}  // namespace
}  // namespace stela::temporary_tables_test
