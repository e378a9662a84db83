// SQL of the user's in the transaction of the events, as SQLite has it: tests/contract has what
// holds on every engine.
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sql_test {
namespace {

using test::append;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SqlInATransaction : public ::testing::Test {
 protected:
  SqlInATransaction() {
    store->transact([](Transaction& transaction) {
      Sql{transaction}.execute(
          "CREATE TABLE limits (account TEXT PRIMARY KEY, used INTEGER CHECK (used <= 100), "
          "note TEXT) STRICT");
    });
  }

  void run(std::string_view statement) {
    store->transact([&](Transaction& transaction) { Sql{transaction}.execute(statement); });
  }
  /// What the statement is refused with, between an event and a row that must stand nonetheless.
  std::string refusal_of(std::string_view statement) {
    std::string message;
    store->transact([&](Transaction& transaction) {
      Sql sql{transaction};
      append(transaction, "order-1");
      message = message_of<UsageError>([&] { sql.execute(statement); });
      sql.execute("INSERT OR REPLACE INTO limits VALUES ('after', 1, NULL)");
    });
    EXPECT_THAT(test::lines(store->read_stream(StreamId::parse("order-1"), {.from = last()})),
                ::testing::SizeIs(1));
    EXPECT_THAT(limits(), ElementsAre("after|1|NULL"));
    return message;
  }
  StreamVersion last() { return StreamVersion{++appended_}; }
  std::vector<std::string> limits() {
    return test::RawSqlite{path}.rows("SELECT * FROM limits ORDER BY account");
  }
  std::vector<std::string> events() { return test::lines(store->read_all()); }

  test::TempDir dir;
  const std::string path = dir.file("bank.db");
  std::unique_ptr<Store> store = test::open_store(path);

 private:
  std::int64_t appended_ = 0;
};

TEST_F(SqlInATransaction, RefusesWrongSqlAndContinues) {
  EXPECT_THAT(refusal_of("INSERT INTO limit VALUES (1)"),
              HasSubstr("\"INSERT INTO limit VALUES (1)\" failed: near \"limit\": syntax error"));
  EXPECT_THAT(refusal_of("INSERT INTO nowhere VALUES (1)"), HasSubstr("no such table: nowhere"));
  EXPECT_THAT(refusal_of("DELETE FROM limits; DELETE FROM limits"),
              HasSubstr("isn't one statement"));
  EXPECT_THAT(refusal_of(""), HasSubstr("isn't one statement"));
}

TEST_F(SqlInATransaction, TakesParametersOfOneForm) {
  for (const std::string_view value : {"?", ":used", "@used", "$1", "?2"}) {
    const std::string sql = "UPDATE limits SET used = " + std::string{value};
    EXPECT_THAT(refusal_of(sql), HasSubstr("has no parameter ?1; parameters are written ?1, ?2"))
        << sql;
  }
  EXPECT_THAT(refusal_of("UPDATE limits SET used = ?1"), HasSubstr("has 1 parameters, and 0"));
}

TEST_F(SqlInATransaction, RunsNoPragma) {
  for (const std::string_view sql :
       {"PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF", "PRAGMA user_version = 3",
        "PRAGMA query_only = ON", "EXPLAIN PRAGMA journal_mode = DELETE"}) {
    EXPECT_THAT(refusal_of(sql), HasSubstr("a PRAGMA isn't run")) << sql;
  }
  store->transact([](Transaction& transaction) {
    EXPECT_EQ(Sql{transaction}.query("SELECT * FROM pragma_table_info('limits')").size(), 3U);
  });
}

TEST_F(SqlInATransaction, LeavesTheFileAlone) {
  for (const std::string_view sql :
       {"ATTACH 'other.db' AS other", "DETACH main", "ANALYZE", "CREATE VIEW v AS SELECT 1"}) {
    EXPECT_THAT(refusal_of(sql), HasSubstr("SQL reads, writes rows")) << sql;
  }
  EXPECT_THAT(refusal_of("VACUUM"), HasSubstr("VACUUM"));
  EXPECT_THAT(refusal_of("CREATE TEMP TABLE events (a)"), HasSubstr("temp"));
  EXPECT_THAT(refusal_of("DELETE FROM sqlite_schema"), HasSubstr("may not be modified"));
}

TEST_F(SqlInATransaction, ReadsTablesOfStelaAndWritesNone) {
  append(*store, "order-9");
  store->transact([](Transaction& transaction) {
    EXPECT_EQ(Sql{transaction}.value<std::string>("SELECT name FROM streams"), "order-9");
  });
  for (const std::string_view sql :
       {"DELETE FROM events", "UPDATE \"STREAMS\" SET name = 'x'",
        "INSERT INTO main.append_ids SELECT * FROM append_ids", "DROP TABLE event_kinds",
        "ALTER TABLE snapshots ADD COLUMN more", "CREATE INDEX mine ON events (version)",
        "CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TABLE outbox_mine (a)", "CREATE TABLE \"totals@1.orders\" (a)",
        "WITH gone AS (SELECT 1) DELETE FROM stela_facts"}) {
    EXPECT_THAT(refusal_of(sql),
                ::testing::AnyOf(HasSubstr("are Stela's"), HasSubstr("a table of a read model")))
        << sql;
  }
}

TEST_F(SqlInATransaction, WritesNoTableThatAStoreIsMadeWith) {
  for (const std::string& table : test::RawSqlite{path}.rows(
           "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'limits'")) {
    EXPECT_THAT(refusal_of("DELETE FROM " + table), HasSubstr("are Stela's")) << table;
  }
}

TEST_F(SqlInATransaction, DoesNotRenameATableToOneOfStelas) {
  EXPECT_THAT(refusal_of("ALTER TABLE limits RENAME TO outbox_limits"),
              HasSubstr("tables aren't renamed here"));
}

TEST_F(SqlInATransaction, MakesAltersAndDropsTablesOfTheUsers) {
  for (const std::string_view sql :
       {"CREATE TABLE entries (a INTEGER)", "CREATE INDEX by_a ON entries (a)",
        "ALTER TABLE entries ADD COLUMN b", "ALTER TABLE entries RENAME COLUMN b TO c",
        "ALTER TABLE entries DROP COLUMN c", "DROP INDEX by_a",
        "CREATE TRIGGER noted AFTER INSERT ON entries BEGIN UPDATE limits SET used = 1; END",
        "DROP TRIGGER noted", "DROP TABLE entries"}) {
    EXPECT_NO_THROW(run(sql)) << sql;
  }
}

TEST_F(SqlInATransaction, ATriggerOfTheUsersWritesNoTableOfStelas) {
  run("INSERT INTO limits VALUES ('ada', 1, NULL)");
  run("CREATE TRIGGER forged AFTER INSERT ON limits BEGIN DELETE FROM streams; END");

  // The statement was prepared before, when there was no trigger.
  EXPECT_THAT(message_of<UsageError>([&] { run("INSERT INTO limits VALUES ('ada', 1, NULL)"); }),
              HasSubstr("it writes 'streams', and tables of that name are Stela's"));
}

TEST_F(SqlInATransaction, IsUndoneAsAWholeByOrRollback) {
  run("INSERT INTO limits VALUES ('ada', 1, NULL)");

  const std::string message = message_of<UsageError>([&] {
    store->transact([](Transaction& transaction) {
      append(transaction, "order-1");
      Sql sql{transaction};
      EXPECT_THROW(sql.execute("INSERT OR ROLLBACK INTO limits VALUES ('ada', 2, NULL)"),
                   UniquenessViolated);
      EXPECT_THAT(message_of<UsageError>([&] { sql.execute("DELETE FROM limits"); }),
                  HasSubstr("ended the transaction; don't use OR ROLLBACK"));
      EXPECT_THROW(append(transaction, "order-1"), UsageError);
    });
  });

  EXPECT_THAT(message, HasSubstr("ended the transaction that it was called in; what it did before "
                                 "that is rolled back"));
  EXPECT_THAT(limits(), ElementsAre("ada|1|NULL"));
  append(*store, "order-1");
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted {}"));
}

TEST_F(SqlInATransaction, RunsMoreStatementsThanItKeeps) {
  store->transact([](Transaction& transaction) {
    Sql sql{transaction};
    sql.execute("INSERT INTO limits VALUES ('ada', 0, NULL)");
    for (int i = 0; i < 600; ++i) {
      sql.execute("UPDATE limits SET note = '" + std::to_string(i % 300) + "'");
    }
  });

  EXPECT_THAT(limits(), ElementsAre("ada|0|299"));
}

TEST_F(SqlInATransaction, IsRefusedOutsideAStore) {
  testing::MemoryStore memory;
  memory.transact([](Transaction& transaction) { EXPECT_THROW(Sql{transaction}, UsageError); });
}

}  // namespace
}  // namespace stela::sql_test
