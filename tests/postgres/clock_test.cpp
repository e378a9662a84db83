// The time by the server's clock.
#include "database/database.hpp"
#include "support/postgres_server.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace stela::postgres::clock_test {
namespace {

using namespace std::chrono_literals;
using test::PostgresServer;
using test::TcpProxy;

TEST(PostgresClock, IsNeverAheadOfTheServerInATransaction) {
  const PostgresServer server{PostgresServer::Options{.tcp = true}};
  TcpProxy proxy{server.port()};
  Store store =
      open("host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string(proxy.port()));
  database::Database& database = store.database();
  // The server answers at the end of the time that a question takes.
  proxy.delay(TcpProxy::Direction::requests, 100ms);
  const auto slow_since = std::chrono::steady_clock::now();
  database.write([&](database::Connection& connection) {
    const Timestamp begun = system_clock().now();
    const Timestamp exact = database.now(connection);
    EXPECT_GE(exact, begun + 100ms);
    EXPECT_LE(exact, system_clock().now());
    const Timestamp about = database.now();
    EXPECT_GT(about, system_clock().now()) << "it takes the answer for one from the middle";
    // A machine that is busy makes a question slower still.
    const auto longest_question = std::chrono::steady_clock::now() - slow_since;
    EXPECT_LT(about, system_clock().now() +
                         std::chrono::ceil<std::chrono::microseconds>(longest_question / 2));
  });
}

}  // namespace
}  // namespace stela::postgres::clock_test
