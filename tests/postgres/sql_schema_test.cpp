// The schema of the user's SQL: where tables are made and found, and what a store of an older
// Stela's sees.
#include "support/messages.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::postgres::sql_schema_test {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PostgresSqlSchema : public ::testing::Test {
 protected:
  static void run(Store& store, const std::string& sql) {
    store.transact([&](Transaction& transaction) { Sql{transaction}.execute(sql); });
  }
  static int value(Store& store, const std::string& sql) {
    int found = 0;
    store.transact(
        [&](Transaction& transaction) { found = Sql{transaction}.value<int>(sql).value_or(-1); });
    return found;
  }
  std::string schemas_of(const std::string& table) const {
    return server.ask(
        "SELECT string_agg(schemaname, ' ' ORDER BY schemaname) FROM pg_tables WHERE tablename = "
        "'" +
        table + "'");
  }
  /// A store without the fact.
  void make_store_of_old() const {
    open(server.url());
    server.ask("DELETE FROM stela.stela_facts WHERE name = 'sql_schema'; DROP SCHEMA stela_app");
  }

  test::PostgresServer server;
};

TEST_F(PostgresSqlSchema, KeepsTheTablesOfTwoStoresApart) {
  Store first = open(server.url());
  Store second = open(server.url(), {.schema = "shop"});
  for (Store* const store : {&first, &second}) {
    run(*store, "CREATE TABLE IF NOT EXISTS limits (used integer)");
    run(*store, "INSERT INTO limits VALUES (1)");
    EXPECT_EQ(value(*store, "SELECT count(*) FROM limits"), 1);
  }
  EXPECT_EQ(schemas_of("limits"), "shop_app stela_app");
}

TEST_F(PostgresSqlSchema, IsAFactOfTheStore) {
  const Options named{.sql_schema = "billing"};
  Store store = open(server.url(), named);
  run(store, "CREATE TABLE limits AS SELECT 7 AS used");
  EXPECT_EQ(schemas_of("limits"), "billing");

  Store without = open(server.url());
  EXPECT_EQ(value(without, "SELECT used FROM limits"), 7);
  EXPECT_NO_THROW(open(server.url(), named));
  EXPECT_THAT(message_of<UsageError>([&] { open(server.url(), {.sql_schema = "public"}); }),
              HasSubstr("the sql_schema of this store is 'billing', and 'public' was asked for"));
}

TEST_F(PostgresSqlSchema, IsLeftToTheSearchPathIfItIsEmpty) {
  server.ask("CREATE SCHEMA theirs");
  Store store = open(server.url() + "&options=-csearch_path%3Dtheirs", {.sql_schema = ""});
  run(store, "CREATE TABLE limits (used integer)");
  EXPECT_EQ(schemas_of("limits"), "theirs");
  EXPECT_EQ(server.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'stela_app'"), "0");
}

TEST_F(PostgresSqlSchema, ComesBeforeTheSearchPathAndDoesNotHideIt) {
  server.ask(
      "CREATE TABLE public.rates AS SELECT 3 AS cents; CREATE TABLE public.limits AS SELECT 1");
  Store store = open(server.url());
  run(store, "CREATE TABLE limits AS SELECT 2 AS used");
  EXPECT_EQ(value(store, "SELECT used FROM limits"), 2);
  EXPECT_EQ(value(store, "SELECT cents FROM rates"), 3);
}

TEST_F(PostgresSqlSchema, ChangesNothingInAStoreOfAnOlderStela) {
  make_store_of_old();
  server.ask("CREATE TABLE public.limits AS SELECT 5 AS used");
  Store store = open(server.url());
  // In another schema this would make an empty table that hides the full one.
  run(store, "CREATE TABLE IF NOT EXISTS limits (used integer)");
  EXPECT_EQ(value(store, "SELECT used FROM limits"), 5);
  run(store, "CREATE TABLE more (n integer)");
  EXPECT_EQ(schemas_of("more"), "public");
}

TEST_F(PostgresSqlSchema, IsGivenToAStoreOfAnOlderStelaByItsOwner) {
  make_store_of_old();
  server.ask("CREATE TABLE public.limits AS SELECT 5 AS used");
  {
    Store reader = open(server.url(), {.sql_schema = "stela_app", .read_only = true});
    EXPECT_EQ(server.ask("SELECT count(*) FROM stela.stela_facts"), "2");
  }
  open(server.url(), {.sql_schema = "stela_app"});
  Store store = open(server.url());
  EXPECT_EQ(value(store, "SELECT used FROM limits"), 5);
  run(store, "UPDATE limits SET used = 6");
  run(store, "CREATE TABLE more (n integer)");
  EXPECT_EQ(schemas_of("limits"), "public");
  EXPECT_EQ(schemas_of("more"), "stela_app");

  server.ask("ALTER TABLE public.limits SET SCHEMA stela_app");
  EXPECT_EQ(value(store, "SELECT used FROM limits"), 6);
}

TEST_F(PostgresSqlSchema, IsNoStores) {
  EXPECT_THAT(message_of<UsageError>([&] { open(server.url(), {.sql_schema = "stela"}); }),
              HasSubstr("names the schema of Stela's tables"));
  open(server.url(), {.schema = "shop_app"});
  EXPECT_THAT(message_of<UsageError>([&] { open(server.url(), {.schema = "shop"}); }),
              AllOf(HasSubstr("'shop_app' is another store's"), HasSubstr("by sql_schema")));
  EXPECT_NO_THROW(open(server.url(), {.schema = "shop", .sql_schema = "billing"}));
  EXPECT_THAT(message_of<UsageError>([&] { open(server.url(), {.schema = std::string(60, 'a')}); }),
              HasSubstr("the name of sql_schema has 64 bytes"));
}

TEST_F(PostgresSqlSchema, IsNotMadeByARoleThatMayNot) {
  server.ask("CREATE ROLE owner LOGIN; CREATE SCHEMA stela AUTHORIZATION owner");
  const std::string url = server.url("postgres", "owner");
  EXPECT_THAT(message_of<StoreFailed>([&] { open(url); }),
              AllOf(HasSubstr("the schema 'stela_app', for SQL of your own, is missing"),
                    HasSubstr("'owner' may not make it"), HasSubstr("grants.sql")));
  server.ask("CREATE SCHEMA stela_app AUTHORIZATION owner");
  Store store = open(url);
  run(store, "CREATE TABLE limits (used integer)");
  EXPECT_EQ(schemas_of("limits"), "stela_app");
}

TEST_F(PostgresSqlSchema, IsNotReplacedByAnotherOneIfTheRoleMayNotUseIt) {
  open(server.url());
  server.ask(
      "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA stela TO app; GRANT CREATE ON SCHEMA public TO "
      "app; "
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stela TO app");
  Store store = open(server.url("postgres", "app"));
  const std::string make = "CREATE TABLE limits (used integer)";
  const auto refused = [&] { run(store, make); };
  EXPECT_THAT(
      message_of<UsageError>(refused),
      HasSubstr(
          "the schema 'stela_app', for SQL of your own, is missing, or 'app' may not use it"));
  server.ask("GRANT USAGE ON SCHEMA stela_app TO app");
  EXPECT_THAT(message_of<UsageError>(refused), HasSubstr("permission denied for schema stela_app"));
  server.ask("GRANT CREATE ON SCHEMA stela_app TO app");
  run(store, make);
  EXPECT_EQ(schemas_of("limits"), "stela_app");
}

}  // namespace
}  // namespace stela::postgres::sql_schema_test
