// What the tests' own PostgreSQL servers promise.
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <signal.h>

#include <memory>
#include <string>

namespace stela::test::server_test {
namespace {

/// What a query answers, or why it can't.
std::string ask(const std::string& conninfo, const char* sql) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection{PQconnectdb(conninfo.c_str()),
                                                                &PQfinish};
  const std::unique_ptr<PGresult, decltype(&PQclear)> result{PQexec(connection.get(), sql),
                                                             &PQclear};
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) return PQerrorMessage(connection.get());
  return PQgetvalue(result.get(), 0, 0);
}

TEST(PostgresServer, ListensOnItsSocketAlone) {
  const PostgresServer server;
  EXPECT_EQ(ask(server.url(), "SHOW listen_addresses"), "");
  EXPECT_EQ(ask(server.url(), "SHOW server_encoding"), "UTF8");
}

TEST(PostgresServer, ListensOnLoopbackIfItIsAskedTo) {
  const PostgresServer server{{.durable = true, .tcp = true}};
  EXPECT_EQ(ask(server.tcp() + " user=postgres dbname=postgres", "SHOW fsync"), "on");
}

TEST(PostgresServer, KeepsItsDataAfterACrash) {
  PostgresServer server;
  ask(server.url(), "CREATE TABLE kept AS SELECT 7 AS n");
  ask(server.url(), "CHECKPOINT");
  server.crash();
  server.start_again();
  EXPECT_EQ(ask(server.url(), "SELECT n FROM kept"), "7");
}

TEST(PostgresServer, EndsWithTheTestHoweverThatEnds) {
  const Pipe pipe;
  std::string said;
  {
    Process test{[&] {
      const PostgresServer server;
      pipe.write(std::to_string(server.id()) + '\n');
      eventually([] { return false; });
    }};
    ASSERT_TRUE(eventually([&] { return (said += pipe.read_available()).ends_with('\n'); }));
    test.kill();
  }
  const auto server = static_cast<pid_t>(std::stoi(said));
  EXPECT_TRUE(eventually([&] { return ::kill(server, 0) != 0; }));
}

}  // namespace
}  // namespace stela::test::server_test
