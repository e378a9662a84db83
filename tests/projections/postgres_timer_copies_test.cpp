// Timers on PostgreSQL in copies of their database, and after a failover.
#include "projections/bookings.hpp"
#include "support/messages.hpp"
#include "support/postgres_pair.hpp"
#include "support/postgres_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace stela::postgres_timer_copies_test {
namespace {

using namespace std::chrono_literals;
using test::PaymentDeadline;
using test::PostgresServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// An hour after a timer of 15 minutes was set in the database.
class PostgresTimers : public ::testing::Test {
 protected:
  void set_timer(const std::string& url) {
    Store store = postgres::open(url, {.clock = &clock_});
    Projections projections{store};
    projections.add_process(PaymentDeadline{});
    test::request(store, "1");
    Runner{projections}.run_once();
    clock_.advance(1h);
  }
  std::int64_t fired_in(const std::string& url) {
    Store store = postgres::open(url, {.clock = &clock_});
    Projections projections{store};
    projections.add_process(PaymentDeadline{});
    return Runner{projections}.run_once().timers_fired;
  }
  void fire_only_when_resumed(const std::string& url) {
    EXPECT_EQ(fired_in(url), 0);
    {
      Store store = postgres::open(url, {.clock = &clock_});
      TimerOperations timers{store};
      EXPECT_THAT(timers.list({.due = true}), SizeIs(1));
      const auto holds = timers.resume();
      ASSERT_THAT(holds, SizeIs(1));
      EXPECT_EQ(holds[0].reason, HoldReason::restored);
      EXPECT_THAT(holds[0].detail, HasSubstr("copy"));
      EXPECT_THAT(timers.holds(), IsEmpty());
    }
    EXPECT_EQ(fired_in(url), 1);
  }
  static void dump(const std::string& from, const std::string& to) {
    const std::string command =
        "pg_dump '" + from + "' | psql -X -q -v ON_ERROR_STOP=1 '" + to + "' >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  testing::ManualClock clock_;
};

TEST_F(PostgresTimers, AreHeldInACopyByTemplate) {
  const PostgresServer server;
  server.ask("CREATE DATABASE shop");
  set_timer(server.url("shop"));
  server.ask("CREATE DATABASE copy TEMPLATE shop");

  fire_only_when_resumed(server.url("copy"));
  EXPECT_EQ(fired_in(server.url("shop")), 1);
}

TEST_F(PostgresTimers, AreHeldInADumpOnTheSameServer) {
  const PostgresServer server;
  server.ask("CREATE DATABASE shop");
  server.ask("CREATE DATABASE copy");
  set_timer(server.url("shop"));
  dump(server.url("shop"), server.url("copy"));

  fire_only_when_resumed(server.url("copy"));
  EXPECT_EQ(fired_in(server.url("shop")), 1);
}

TEST_F(PostgresTimers, AreHeldInADumpThatReplacesItsSchema) {
  const PostgresServer server;
  server.ask("CREATE DATABASE kept");
  set_timer(server.url());
  dump(server.url(), server.url("kept"));
  server.ask("DROP SCHEMA stela, stela_app CASCADE");
  dump(server.url("kept"), server.url());

  fire_only_when_resumed(server.url());
}

TEST_F(PostgresTimers, GoOnAfterAFailover) {
  test::PostgresPair pair;
  set_timer(pair.url());
  pair.catch_up();
  pair.fail_over();
  EXPECT_EQ(fired_in(pair.url()), 1);
}

TEST_F(PostgresTimers, GoOnAfterTheirDatabaseWasRenamed) {
  const PostgresServer server;
  server.ask("CREATE DATABASE shop");
  set_timer(server.url("shop"));
  server.ask("ALTER DATABASE shop RENAME TO store");
  EXPECT_EQ(fired_in(server.url("store")), 1);
}

}  // namespace
}  // namespace stela::postgres_timer_copies_test
