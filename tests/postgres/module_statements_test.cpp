// The modules' statements are true of their tables on PostgreSQL: a server prepares them.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "database/postgres/sql_text.hpp"
#include "inbox_sql.hpp"
#include "inbox_sql/consumers.hpp"
#include "inbox_sql/gaps.hpp"
#include "inbox_sql/parked.hpp"
#include "inbox_sql/positions.hpp"
#include "inbox_sql/readers.hpp"
#include "operations_sql/care.hpp"
#include "operations_sql/catalogue.hpp"
#include "operations_sql/journal.hpp"
#include "operations_sql/keys.hpp"
#include "operations_sql/links.hpp"
#include "operations_sql/transfer.hpp"
#include "outbox_sql.hpp"
#include "outbox_sql/inspection.hpp"
#include "outbox_sql/logs.hpp"
#include "outbox_sql/losses.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/pending.hpp"
#include "outbox_sql/relay.hpp"
#include "outbox_sql/states.hpp"
#include "outbox_sql/status.hpp"
#include "outbox_sql/transfer.hpp"
#include "outbox_sql/workers.hpp"
#include "projections_sql.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/events.hpp"
#include "projections_sql/parked.hpp"
#include "projections_sql/timer_operations.hpp"
#include "projections_sql/timers.hpp"
#include "projections_sql/transfer.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace stela::postgres::module_statements_test {
namespace {

using Files = std::span<const std::span<const std::string_view>>;

/// Prepares each statement on a server. How many there are.
int prepare_all(const std::string& url, Files files) {
  Connection connection{{.conninfo = url}};
  connection.execute("SET search_path = stela, pg_temp");
  int number = 0;
  for (const auto& statements : files) {
    for (const std::string_view text : statements) {
      const std::string prepare = "PREPARE s" + std::to_string(++number) + " AS ";
      EXPECT_NO_THROW(connection.execute(prepare + std::string{text})) << text;
    }
  }
  return number;
}

TEST(PostgresOperationStatements, FitTheTables) {
  namespace sql = operations::sql;
  const test::PostgresServer server;
  const Store store = postgres::open(server.url());
  const std::span<const std::string_view> files[] = {
      sql::care_on_postgres, sql::catalogue_on_postgres, sql::journal_on_postgres,
      sql::keys_on_postgres, sql::links_on_postgres,     sql::transfer_on_postgres};
  EXPECT_GT(prepare_all(server.url(), files), 60);
}

TEST(PostgresOutboxStatements, FitTheTables) {
  namespace sql = outbox::sql;
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("outbox", sql::migrations, sql::migrations_on_postgres);
  const std::span<const std::string_view> files[] = {
      sql::inspection_on_postgres, sql::logs_on_postgres,       sql::losses_on_postgres,
      sql::messages_on_postgres,   sql::operations_on_postgres, sql::partitions_on_postgres,
      sql::pending_on_postgres,    sql::relay_on_postgres,      sql::states_on_postgres,
      sql::status_on_postgres,     sql::transfer_on_postgres,   sql::workers_on_postgres};
  EXPECT_GT(prepare_all(server.url(), files), 80);
}

TEST(PostgresInboxStatements, FitTheTables) {
  namespace sql = inbox::sql;
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("inbox", sql::migrations, sql::migrations_on_postgres);
  const std::span<const std::string_view> files[] = {
      sql::consumers_on_postgres, sql::gaps_on_postgres, sql::parked_on_postgres,
      sql::positions_on_postgres, sql::readers_on_postgres};
  EXPECT_GT(prepare_all(server.url(), files), 35);
}

TEST(PostgresProjectionStatements, FitTheTables) {
  namespace sql = projections::sql;
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("projections", sql::migrations, sql::migrations_on_postgres);
  // Those of tables.sql are SQLite's.
  const std::span<const std::string_view> files[] = {
      sql::builds_on_postgres,           sql::events_on_postgres, sql::parked_on_postgres,
      sql::timer_operations_on_postgres, sql::timers_on_postgres, sql::transfer_on_postgres};
  EXPECT_GT(prepare_all(server.url(), files), 65);
}

}  // namespace
}  // namespace stela::postgres::module_statements_test
