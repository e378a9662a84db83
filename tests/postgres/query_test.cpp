// How much of a store on PostgreSQL a query by tags looks at.
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <string>

namespace stela::postgres::query_test {
namespace {

TEST(PostgresQuery, LooksAtNoMoreOfALongStreamThanItReturns) {
  constexpr int length = 1'000;
  const test::PostgresServer server;
  Store store = open(server.url());
  test::append(store, "note-1", length);
  const auto looked_at = [&](const std::string& range) {
    // Its session counts from its beginning.
    Connection connection{{.conninfo = server.url()}};
    connection.execute("BEGIN");
    connection.query_text("SELECT count(*) FROM stela.matching(NULL, 'note-1', 0, " + range + ")",
                          {});
    const Result rows = connection.query_text(
        "SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_xact_user_tables "
        "WHERE relname = 'events'",
        {});
    return std::stoi(std::string{rows.bytes(0, 0)});
  };

  EXPECT_EQ(looked_at("0, 1000, true, 1"), 1);
  EXPECT_EQ(looked_at("0, 1000, false, 10"), 10);
  EXPECT_EQ(looked_at("0, 1000, false, 2000"), length);
}

}  // namespace
}  // namespace stela::postgres::query_test
