// docs/schema-postgresql.md lists the tables that a store makes.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "inbox_sql.hpp"
#include "outbox_sql.hpp"
#include "projections_sql.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace stela::postgres::schema_page_test {
namespace {

/// "events.sequence bigint key".
using Columns = std::set<std::string>;

Columns described_columns() {
  const std::regex heading{"### `(\\w+)`"};
  const std::regex row{R"(\| `(\w+)` \| ([a-z ]+)(, key)? \| .+ \|)"};
  std::ifstream page{STELA_SOURCE_DIR "/docs/schema-postgresql.md"};
  Columns columns;
  std::string table;
  std::smatch found;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, found, heading)) table = found[1];
    if (table.empty() || !std::regex_match(line, found, row)) continue;
    columns.insert(table + '.' + found[1].str() + ' ' + found[2].str() +
                   (found[3].matched ? " key" : ""));
  }
  return columns;
}

Columns actual_columns(const std::string& url) {
  Connection connection{{.conninfo = url}};
  const Result found = connection.query_text(
      "SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, -1) || "
      "CASE WHEN i.indrelid IS NULL THEN '' ELSE ' key' END "
      "FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 "
      "LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary "
      "AND a.attnum = ANY (i.indkey) "
      "WHERE c.relnamespace = 'stela'::regnamespace AND c.relkind = 'r' AND NOT a.attisdropped",
      {});
  Columns columns;
  for (int row = 0; row < found.rows(); ++row) columns.emplace(found.bytes(row, 0));
  return columns;
}

TEST(PostgresSchemaPage, DescribesExactlyTheExistingTablesAndColumns) {
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("outbox", outbox::sql::migrations, outbox::sql::migrations_on_postgres);
  store.database().migrate("inbox", inbox::sql::migrations, inbox::sql::migrations_on_postgres);
  store.database().migrate("projections", projections::sql::migrations,
                           projections::sql::migrations_on_postgres);

  EXPECT_EQ(described_columns(), actual_columns(server.url()));
}

}  // namespace
}  // namespace stela::postgres::schema_page_test
