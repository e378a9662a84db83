// What the user's SQL does in a transaction of the events, whatever the engine.
#include "contract/event_store.hpp"
#include "contract/sql.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sql_contract {
namespace {

using test::message_of;
using test::SqlContract;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_P(SqlContract, CommitsWithTheEvents) {
  store->transact([](Transaction& transaction) {
    Sql sql{transaction};
    EXPECT_EQ(sql.execute("INSERT INTO limits VALUES (?1, ?2, ?3)", "ada", 40, nullptr), 1);
    note(transaction, "order-1");
  });

  EXPECT_THAT(limits(), ElementsAre("ada|40|NULL"));
  EXPECT_THAT(events(), ElementsAre("1 order-1@1 noted"));
}

TEST_P(SqlContract, RollsBackWithTheEvents) {
  const auto fail = [](Transaction& transaction) {
    note(transaction, "order-1");
    Sql{transaction}.execute("INSERT INTO limits VALUES ('ada', 40, NULL)");
    throw std::runtime_error{"no"};
  };

  EXPECT_THROW(store->transact(fail), std::runtime_error);

  EXPECT_THAT(limits(), IsEmpty());
  EXPECT_THAT(events(), IsEmpty());
}

TEST_P(SqlContract, RollsBackWithANestedPart) {
  store->transact([](Transaction& transaction) {
    Sql{transaction}.execute("INSERT INTO limits VALUES ('ada', 40, NULL)");
    EXPECT_THROW(transaction.transact([](Transaction& part) {
      Sql{part}.execute("INSERT INTO limits VALUES ('bob', 40, NULL)");
      throw std::runtime_error{"no"};
    }),
                 std::runtime_error);
  });

  EXPECT_THAT(limits(), ElementsAre("ada|40|NULL"));
}

TEST_P(SqlContract, WorksInAUnitOfWorkAfterItsEvents) {
  UnitOfWork unit{*store};
  unit.add(test::Order::place(Id<test::Order>::from("7"), "jane", 100));
  unit.in_transaction([](Transaction& transaction) {
    Sql sql{transaction};
    EXPECT_EQ(sql.value<int>("SELECT count(*) FROM events"), 1);
    sql.execute("INSERT INTO limits VALUES ('jane', 100, NULL)");
  });
  unit.commit();

  EXPECT_THAT(limits(), ElementsAre("jane|100|NULL"));
}

TEST_P(SqlContract, GivesRowsByTheNamesOfTheirColumns) {
  std::vector<std::string> read;
  store->transact([&](Transaction& transaction) {
    Sql sql{transaction};
    sql.execute("INSERT INTO limits VALUES (?2, ?1, ?3), (?3, ?1, NULL)", 40, "ada", "bob");
    for (const Row row : sql.query("SELECT * FROM limits ORDER BY account DESC")) {
      read.push_back(row.get<std::string>("account") + ' ' +
                     std::to_string(row.get<std::int64_t>("used")) + ' ' +
                     row.get<std::optional<std::string>>("note").value_or("nothing"));
    }
    EXPECT_FALSE(sql.value<int>("SELECT used FROM limits WHERE account = ?1", "eve"));
  });

  EXPECT_THAT(read, ElementsAre("bob 40 nothing", "ada 40 bob"));
}

TEST_P(SqlContract, GivesEveryKindOfValueBack) {
  store->transact([&](Transaction& transaction) {
    Sql sql{transaction};
    const std::vector<std::byte> bytes{std::byte{0}, std::byte{0x7f}, std::byte{0xff}};
    const Uuid id = make_uuid();
    sql.execute("CREATE TABLE kinds (whole BIGINT, real DOUBLE PRECISION, words TEXT, id TEXT)");
    sql.execute("INSERT INTO kinds VALUES (?1, ?2, ?3, ?4)", std::int64_t{-5'000'000'000}, 0.25,
                "it's \"?1\" {}\\", id);
    const Rows rows =
        sql.query("SELECT * FROM kinds WHERE whole = ?1", std::int64_t{-5'000'000'000});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].get<std::int64_t>("whole"), -5'000'000'000);
    EXPECT_EQ(rows[0].get<double>("real"), 0.25);
    EXPECT_EQ(rows[0].get<std::string>("words"), "it's \"?1\" {}\\");
    EXPECT_EQ(rows[0].get<Uuid>("id"), id);
    EXPECT_EQ(sql.value<std::vector<std::byte>>("SELECT ?1", bytes), bytes);
    EXPECT_EQ(sql.value<std::int64_t>("SELECT sum(whole) FROM kinds"), -5'000'000'000);
  });
}

TEST_P(SqlContract, NamesTheConstraintThatRefusesARow) {
  run("CREATE UNIQUE INDEX by_note ON limits (upper(note))");
  run("INSERT INTO limits VALUES ('ada', 40, 'x')");
  store->transact([](Transaction& transaction) {
    Sql sql{transaction};
    try {
      sql.execute("INSERT INTO limits VALUES ('ada', 40, NULL)");
      FAIL();
    } catch (const UniquenessViolated& e) {
      EXPECT_EQ(e.constraint().table, "limits");
      EXPECT_THAT(e.constraint().columns, ElementsAre("account"));
    }
    try {
      sql.execute("INSERT INTO limits VALUES ('bob', 40, 'X')");
      FAIL();
    } catch (const UniquenessViolated& e) {
      EXPECT_EQ(e.constraint().table, "limits");
      EXPECT_EQ(e.constraint().name, "by_note");
    }
    EXPECT_THROW(sql.execute("UPDATE limits SET used = 101"), ConstraintViolated);
    sql.execute("INSERT INTO limits VALUES ('eve', 1, NULL)");
  });

  EXPECT_THAT(limits(), ElementsAre("ada|40|x", "eve|1|NULL"));
}

TEST_P(SqlContract, MakesNoTableWhoseKeyIsLeftToTheCommit) {
  for (const std::string_view key :
       {"account TEXT REFERENCES limits DEFERRABLE INITIALLY DEFERRED",
        "account TEXT, CONSTRAINT owner FOREIGN KEY (account) REFERENCES limits (account) ON "
        "DELETE "
        "CASCADE deferrable /* always */ initially\n-- until the end\nDeferred",
        "account TEXT REFERENCES limits, other TEXT REFERENCES limits DEFERRABLE INITIALLY "
        "DEFERRED"}) {
    const std::string sql = "CREATE TABLE entries (" + std::string{key} + ")";
    EXPECT_THAT(refusal_of(sql), AllOf(HasSubstr('"' + sql + "\" isn't run: "),
                                       HasSubstr("declare it INITIALLY IMMEDIATE")));
  }
  run("CREATE TABLE entries (account TEXT REFERENCES limits DEFERRABLE INITIALLY IMMEDIATE, "
      "\"initially\" TEXT DEFAULT 'DEFERRABLE INITIALLY DEFERRED')");
  EXPECT_THAT(refusal_of("ALTER TABLE entries ADD COLUMN other TEXT REFERENCES limits DEFERRABLE "
                         "INITIALLY DEFERRED"),
              HasSubstr("declare it INITIALLY IMMEDIATE"));
}

TEST_P(SqlContract, RefusesWrongSqlAndContinues) {
  EXPECT_THAT(refusal_of("INSERT INTO limit VALUES (1)"),
              HasSubstr("\"INSERT INTO limit VALUES (1)\" failed: "));
  EXPECT_THAT(refusal_of("INSERT INTO nowhere VALUES (1)"), HasSubstr("nowhere"));
  EXPECT_THAT(refusal_of("DELETE FROM limits; DELETE FROM limits"),
              HasSubstr("isn't one statement"));
  EXPECT_THAT(refusal_of(""), HasSubstr("isn't one statement"));
  EXPECT_THAT(refusal_of("-- nothing"), HasSubstr("isn't one statement"));
}

TEST_P(SqlContract, TakesParametersOfOneForm) {
  for (const std::string_view value : {"?", ":used", "$1", "?2"}) {
    EXPECT_THAT(
        refusal_of("UPDATE limits SET used = " + std::string{value}),
        ::testing::AnyOf(HasSubstr("parameter"), HasSubstr("syntax error"), HasSubstr("column")))
        << value;
  }
  EXPECT_THAT(refusal_of("UPDATE limits SET used = ?2"),
              HasSubstr("has no parameter ?1; parameters are written ?1, ?2"));
  EXPECT_THAT(refusal_of("UPDATE limits SET used = ?1"), HasSubstr("has 1 parameters, and 0"));
}

TEST_P(SqlContract, DoesNotEndOrNestTheTransaction) {
  for (const std::string_view sql : {"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT mine",
                                     "RELEASE stela_savepoint", "ROLLBACK TO stela_savepoint"}) {
    EXPECT_THAT(refusal_of(sql), HasSubstr("the transaction is begun and ended for it")) << sql;
  }
}

TEST_P(SqlContract, ChangesNoSettings) {
  for (const std::string_view sql :
       {"VACUUM", "ANALYZE", "PRAGMA foreign_keys = OFF", "SET synchronous_commit = off",
        "CREATE TEMP TABLE events (a INTEGER)"}) {
    EXPECT_NE(refusal_of(sql), "nothing was thrown") << sql;
  }
}

TEST_P(SqlContract, ReadsTablesOfStelaAndWritesNone) {
  note(*store, "order-9");
  store->transact([](Transaction& transaction) {
    EXPECT_EQ(Sql{transaction}.value<std::string>("SELECT name FROM streams"), "order-9");
  });
  for (const std::string_view sql :
       {"DELETE FROM events", "UPDATE \"streams\" SET name = 'x'",
        "INSERT INTO append_ids SELECT * FROM append_ids", "DROP TABLE event_kinds",
        "ALTER TABLE snapshots ADD COLUMN more INTEGER", "CREATE INDEX mine ON events (version)",
        "WITH gone AS (SELECT 1) DELETE FROM stela_facts"}) {
    EXPECT_NE(refusal_of(sql), "nothing was thrown") << sql;
  }
}

TEST_P(SqlContract, MakesAltersAndDropsTablesOfTheUsers) {
  for (const std::string_view sql :
       {"CREATE TABLE entries (a INTEGER)", "CREATE INDEX by_a ON entries (a)",
        "ALTER TABLE entries ADD COLUMN b INTEGER", "ALTER TABLE entries RENAME COLUMN b TO c",
        "ALTER TABLE entries DROP COLUMN c", "DROP INDEX by_a", "DROP TABLE entries"}) {
    EXPECT_NO_THROW(run(sql)) << sql;
  }
}

TEST_P(SqlContract, RunsAThousandStatementsInOneTransaction) {
  store->transact([](Transaction& transaction) {
    Sql sql{transaction};
    sql.execute("INSERT INTO limits VALUES ('ada', 0, NULL)");
    for (int i = 0; i < 1000; ++i) {
      sql.execute("UPDATE limits SET note = '" + std::to_string(i % 300) + "'");
    }
  });

  EXPECT_THAT(limits(), ElementsAre("ada|0|99"));
}

}  // namespace
}  // namespace stela::sql_contract
