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
    connection.execute("SET track_functions = 'all'; BEGIN");
    connection.query_text("SELECT count(*) FROM stela.matching(NULL, 'note-1', 0, " + range + ")",
                          {});
    const Result calls = connection.query_text(
        "SELECT calls::text FROM pg_stat_xact_user_functions WHERE funcname = 'event_matches'", {});
    return std::stoi(std::string{calls.bytes(0, 0)});
  };

  EXPECT_EQ(looked_at("0, 1000, true, 1"), 1);
  EXPECT_EQ(looked_at("0, 1000, false, 10"), 10);
  EXPECT_EQ(looked_at("0, 1000, false, 2000"), length);
}

}  // namespace
}  // namespace stela::postgres::query_test
