// The outbox's statements are true of its tables on PostgreSQL: a server prepares them.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "database/postgres/sql_text.hpp"
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
#include "outbox_sql/workers.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {
namespace {

namespace sql = outbox::sql;

TEST(PostgresOutboxStatements, FitTheTables) {
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("outbox", sql::migrations, sql::migrations_on_postgres);
  Connection connection{{.conninfo = server.url()}};
  connection.execute("SET search_path = stela, pg_temp");
  const std::span<const std::string_view> files[] = {
      sql::inspection_on_postgres, sql::logs_on_postgres,       sql::losses_on_postgres,
      sql::messages_on_postgres,   sql::operations_on_postgres, sql::partitions_on_postgres,
      sql::pending_on_postgres,    sql::relay_on_postgres,      sql::states_on_postgres,
      sql::status_on_postgres,     sql::workers_on_postgres};
  int number = 0;
  for (const auto& statements : files) {
    for (const std::string_view text : statements) {
      const std::string prepare = "PREPARE s" + std::to_string(++number) + " AS ";
      EXPECT_NO_THROW(connection.execute(prepare + std::string{text})) << text;
    }
  }
  EXPECT_GT(number, 80);
}

}  // namespace
}  // namespace stela::postgres
