#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace stela::read_model_test {
namespace {

using test::place;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour : std::uint8_t { red, green };

/// Runs `work` where a handler runs, and keeps what it throws.
std::string in_handler(const std::function<void(ReadModel&)>& work) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{[&](ReadModel& model, const StoredEvent&) { work(model); }},
                  {.max_attempts = 1});
  place(store, "1");
  Runner{projections}.run_once();
  return ProjectionOperations{store}.status().at(0).error;
}

TEST(ReadModel, KeepsValuesOfEveryType) {
  const auto id = make_uuid();
  const Timestamp time{std::chrono::microseconds{1'700'000'000'000'001}};
  const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}};
  const std::string error = in_handler([&](ReadModel& model) {
    const Rows rows = model.query(
        "SELECT ?1 AS number, ?2 AS real, ?3 AS text, ?4 AS missing, ?5 AS bytes, ?6 AS colour, "
        "?7 AS id, ?8 AS time, ?9 AS yes, ?10 AS stream",
        std::numeric_limits<std::int64_t>::min(), 0.5, std::string{"a\0b", 3}, std::optional<int>{},
        bytes, Colour::green, id, time, true, StreamId::parse("order-1"));
    ASSERT_EQ(rows.size(), 1U);
    const Row row = rows[0];
    EXPECT_EQ(row.get<std::int64_t>("number"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(row.get<double>("real"), 0.5);
    EXPECT_EQ(row.get<std::string>("text"), (std::string{"a\0b", 3}));
    EXPECT_EQ(row.get<std::optional<int>>("missing"), std::nullopt);
    EXPECT_EQ(row.get<std::vector<std::byte>>("bytes"), bytes);
    EXPECT_EQ(row.get<Colour>("colour"), Colour::green);
    EXPECT_EQ(row.get<Uuid>("id"), id);
    EXPECT_EQ(row.get<Timestamp>("time"), time);
    EXPECT_TRUE(row.get<bool>("yes"));
    EXPECT_EQ(row.get<std::string>("stream"), "order-1");
  });
  EXPECT_EQ(error, "");
}

TEST(ReadModel, NamesTheActualTypeOfAColumn) {
  const auto reading = [](auto&& get) {
    return in_handler([&](ReadModel& model) {
      const Rows rows = model.query("SELECT 300 AS n, NULL AS missing, 'x' AS text");
      get(rows[0]);
    });
  };
  EXPECT_THAT(reading([](const Row& row) { row.get<std::string>("n"); }),
              HasSubstr("column 'n' holds an integer, and text was asked for"));
  EXPECT_THAT(reading([](const Row& row) { row.get<std::uint8_t>("n"); }),
              HasSubstr("an integer of that size was asked for"));
  EXPECT_THAT(reading([](const Row& row) { row.get<int>("missing"); }),
              HasSubstr("ask for a std::optional"));
  EXPECT_THAT(reading([](const Row& row) { row.get<Uuid>("text"); }),
              HasSubstr("a UUID as text was asked for"));
  EXPECT_THAT(reading([](const Row& row) { row.get<int>("m"); }),
              HasSubstr("there is no column 'm'; there are: n missing text"));
}

TEST(ReadModel, WritesTablesOfItsOwnOnly) {
  const auto running = [](const char* sql) {
    return in_handler([&](ReadModel& model) { model.execute(sql); });
  };
  EXPECT_THAT(running("DELETE FROM projections"), HasSubstr("it writes 'projections'; a projector "
                                                            "writes only tables of its own"));
  EXPECT_THAT(running("INSERT INTO events DEFAULT VALUES"), HasSubstr("it writes 'events'"));
  EXPECT_THAT(running("CREATE TABLE {more} (a)"), HasSubstr("tables are made in `create` only"));
  EXPECT_THAT(running("DROP TABLE {orders}"), HasSubstr("tables are made in `create` only"));
  EXPECT_THAT(running("COMMIT"), HasSubstr("its transaction is begun and ended for it"));
  EXPECT_THAT(running("PRAGMA user_version = 7"), HasSubstr("only reads"));
  EXPECT_THAT(running("ATTACH 'x.db' AS x"), HasSubstr("only reads"));
}

TEST(ReadModel, NamesWrongSql) {
  const auto running = [](const char* sql) {
    return in_handler([&](ReadModel& model) { model.execute(sql); });
  };
  EXPECT_THAT(running("SELEKT 1"), HasSubstr("\"SELEKT 1\" failed: near \"SELEKT\""));
  EXPECT_THAT(running("SELECT 1; SELECT 2"), HasSubstr("isn't one statement"));
  EXPECT_THAT(running(" "), HasSubstr("isn't one statement"));
  EXPECT_THAT(running("SELECT ?1, ?2"), HasSubstr("has 2 parameters, and 0 values were given"));
  EXPECT_THAT(running("SELECT * FROM {nothing}"), HasSubstr("no such table: totals@1.nothing"));
  EXPECT_THAT(in_handler([](ReadModel& model) {
                model.execute("SELECT ?1", std::numeric_limits<std::uint64_t>::max());
              }),
              HasSubstr("doesn't fit a column"));
}

TEST(ReadModel, LeavesBracesInQuotesAlone) {
  const std::string error = in_handler([](ReadModel& model) {
    EXPECT_EQ(model.value<std::string>("SELECT '{orders}' -- {orders}"), "{orders}");
    EXPECT_EQ(model.value<int>("SELECT count(*) /* {x} */ FROM {orders}"), 0);
    EXPECT_EQ(model.value<std::string>("SELECT json_object('a', '{b}')"), "{\"a\":\"{b}\"}");
  });
  EXPECT_EQ(error, "");
}

TEST(ReadModel, TellsHowManyRowsChanged) {
  const std::string error = in_handler([](ReadModel& model) {
    EXPECT_EQ(
        model.execute("INSERT INTO {orders} VALUES ('7', '', 0, 0, NULL), ('8', '', 0, 0, NULL)"),
        2);
    EXPECT_EQ(model.execute("UPDATE {orders} SET cents = 1 WHERE id = '9'"), 0);
    EXPECT_EQ(model.execute("DELETE FROM {orders}"), 2);
    EXPECT_EQ(model.execute("SELECT 1"), 0);
  });
  EXPECT_EQ(error, "");
}

TEST(ModelReader, ReadsOnly) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  ModelReader reader{store};

  EXPECT_EQ(reader.value<int>("SELECT count(*) FROM orders WHERE id = ?1", "1"), 0);
  for (const char* const sql : {"DELETE FROM projections", "BEGIN", ""}) {
    EXPECT_THAT(test::message_of<UsageError>([&] { reader.query(sql); }),
                HasSubstr("doesn't only read"));
  }
  for (const char* const sql :
       {"PRAGMA cache_size = 1", " /* ; */ pragma locking_mode(EXCLUSIVE)"}) {
    EXPECT_THAT(test::message_of<UsageError>([&] { reader.query(sql); }),
                HasSubstr("doesn't only read"));
  }
  EXPECT_GT(reader.query("SELECT * FROM pragma_table_info('projections')").size(), 1U);
  EXPECT_THAT(test::message_of<UsageError>([&] { reader.query("SELECT missing"); }),
              HasSubstr("no such column: missing"));
}

TEST(ModelReader, AppliesNoRefusedPragma) {
  auto store = test::open_empty();
  Projections projections{store};
  ModelReader reader{store};
  const auto size = [&] { return reader.value<int>("SELECT cache_size FROM pragma_cache_size"); };
  const auto before = size();

  for (const char* const sql :
       {"PRAGMA cache_size = 7", ";/* ; */PRAGMA cache_size(7)", "EXPLAIN PRAGMA cache_size = 7",
        "explain query plan pragma cache_size = 7", "SELECT 1; PRAGMA cache_size = 7",
        "SELECT 1; EXPLAIN PRAGMA cache_size = 7"}) {
    EXPECT_THROW(reader.query(sql), UsageError) << sql;
    EXPECT_EQ(size(), before) << sql;
  }
  EXPECT_GT(reader.query("EXPLAIN SELECT 1").size(), 1U);
}

TEST(ModelReader, RunsOneStatementAtATime) {
  auto store = test::open_empty();
  Projections projections{store};
  ModelReader reader{store};

  for (const char* const sql : {"SELECT 1; DELETE FROM events", "SELECT 1; SELECT 2"}) {
    EXPECT_THAT(test::message_of<UsageError>([&] { reader.query(sql); }),
                HasSubstr("isn't one statement"));
  }
  EXPECT_EQ(reader.value<int>("SELECT 1; -- and no more"), 1);
}

/// What somebody did to the tables behind Stela's back.
struct Alteration {
  const char* name;
  const char* sql;

  friend void PrintTo(const Alteration& alteration, std::ostream* out) { *out << alteration.name; }
};

class AlteredTables : public ::testing::TestWithParam<Alteration> {};

TEST_P(AlteredTables, HaltTheirProjectorAndNameIt) {
  const test::TempDir dir = test::TempDir::in_memory();
  {
    auto store = test::open_at(dir.file("a.db"));
    Projections projections{store};
    projections.add(Totals<1>{});
  }
  test::RawSqlite{dir.file("a.db")}.run(GetParam().sql);
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.stopped, 1);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 0 stopped"));
  EXPECT_THAT(ProjectionOperations{store}.status().at(0).error,
              HasSubstr("altered or dropped by hand"));
}

INSTANTIATE_TEST_SUITE_P(
    Hands, AlteredTables,
    ::testing::Values(
        Alteration{"NoTable", "DROP VIEW orders; DROP TABLE \"totals@1.orders\""},
        Alteration{"AnotherColumn", "ALTER TABLE \"totals@1.orders\" ADD COLUMN more TEXT"},
        Alteration{"NoIndex", "DROP INDEX \"totals@1.orders_by_customer\""},
        Alteration{"AnotherIndex", "CREATE INDEX extra ON \"totals@1.orders\" (cents)"},
        Alteration{"NoView", "DROP VIEW orders"}),
    ::testing::PrintToStringParamName());

TEST(ReadModel, IsReadAndNotWrittenBySqlOfATransaction) {
  auto store = test::open_empty();
  Outbox outbox{store};
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();

  store.transact([](Transaction& transaction) {
    Sql sql{transaction};
    EXPECT_EQ(sql.value<std::string>("SELECT id FROM orders"), "1");
    const Rows tables = sql.query(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE "
        "'sqlite%'");
    EXPECT_GT(tables.size(), 20U);
    for (const Row table : tables) {
      const std::string name = table.get<std::string>("name");
      EXPECT_THROW(sql.execute("DELETE FROM \"" + name + '"'), UsageError) << name;
    }
    EXPECT_THROW(sql.execute("DROP VIEW orders"), UsageError);
  });
}

}  // namespace
}  // namespace stela::read_model_test
