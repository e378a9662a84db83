// A follower that sleeps until another process appends, and who rings for it.
#include "postgres/doorbell.hpp"
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/mutant.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace stela::postgres::doorbell_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::eventually;

/// So late that whoever needs it has missed the commit.
constexpr auto far_away = 60s;

void append(EventLog& log, std::string_view append_id = {}) {
  const StreamId stream = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  log.append({.streams = {&one, 1}, .append_id = append_id});
}

class DoorbellTest : public ::testing::Test {
 protected:
  DoorbellTest() {
    append(store);
    listener.execute("LISTEN " + channel);
  }

  int sleepers() {
    const Result row = asking.query_text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' "
        "AND objsubid = 1",
        {});
    return std::stoi(std::string{row.bytes(0, 0)});
  }
  /// A follower that has found what is there, and got up again.
  std::unique_ptr<database::CommitWatch> awake() {
    auto watch = store.database().watch_commits();
    watch->wait_until(steady_clock::now() + far_away);
    EXPECT_TRUE(eventually([&] { return sleepers() == 0; }));
    return watch;
  }
  /// How often somebody has rung since this was asked last. A notice of its own comes behind all
  /// that were sent before: the server tells one listener after the other.
  int rings() {
    listener.execute("NOTIFY " + channel + ", 'asked'");
    int count = 0;
    while (PGnotify* const notice = PQnotifies(listener.handle())) {
      if (std::string_view{notice->extra}.empty()) ++count;
      PQfreemem(notice);
    }
    return count;
  }
  /// The same, once somebody has.
  int rings_by_now() {
    int count = 0;
    eventually([&] { return (count += rings()) > 0; });
    return count + rings();
  }
  /// Whether what happens in another process wakes a follower that is asleep.
  template <class Happens>
  bool wakes(Happens happens) {
    auto watch = awake();
    bool is_woken = false;
    std::jthread sleeper{[&] {
      const auto late = steady_clock::now() + far_away;
      watch->wait_until(late);
      is_woken = steady_clock::now() < late;
    }};
    EXPECT_TRUE(eventually([&] { return sleepers() == 1; }));
    rings();
    happens();
    sleeper.join();
    EXPECT_TRUE(eventually([&] { return sleepers() == 0; }));
    return is_woken;
  }

  const std::string channel =
      "stela_" + std::to_string(static_cast<std::uint64_t>(bell_lock("stela")));
  test::PostgresServer server;
  Store store = open(server.url());
  Store other = open(server.url());
  Connection asking{{.conninfo = server.url()}};
  Connection listener{{.conninfo = server.url()}};
};

TEST_F(DoorbellTest, WakesAFollowerForEachKindOfAppend) {
  EXPECT_TRUE(wakes([&] { append(other); }));
  EXPECT_EQ(rings_by_now(), 1);
  EXPECT_TRUE(wakes([&] { append(other, "with an id"); }));
  EXPECT_EQ(rings_by_now(), 1);
  EXPECT_TRUE(
      wakes([&] { other.transact([](Transaction& transaction) { append(transaction); }); }));
  EXPECT_EQ(rings_by_now(), 1);
}

TEST_F(DoorbellTest, IsMissedByAMutantThatDoesNotRing) {
  break_append_one(server, "is_awaited := NOT pg_try_advisory_xact_lock(bell);",
                   "is_awaited := false;");
  // The follower finds the event when it looks, within a second.
  EXPECT_TRUE(wakes([&] { append(other); }));
  EXPECT_EQ(rings(), 0);
}

TEST_F(DoorbellTest, IsNotRungWhileNobodySleeps) {
  append(other);
  append(other, "with an id");
  other.transact([](Transaction& transaction) { append(transaction); });
  EXPECT_EQ(rings(), 0);
}

TEST_F(DoorbellTest, IsNotRungForWhatWritesNoEvent) {
  append(other, "once");
  EXPECT_TRUE(wakes([&] {
    append(other, "once");
    other.transact([](Transaction&) {});
    EXPECT_EQ(rings(), 0);
    append(other);
  }));
}

TEST_F(DoorbellTest, LetsItsOwnProcessWakeAFollowerToo) {
  EXPECT_TRUE(wakes([&] { append(store); }));
}

TEST_F(DoorbellTest, KeepsAFollowerAsleepThatComesBackAtItsDeadline) {
  auto watch = awake();
  EXPECT_TRUE(eventually([&] {
    watch->wait_until(steady_clock::now());
    return sleepers() == 1;
  }));
  append(other);
  watch->wait_until(steady_clock::now() + far_away);
  EXPECT_EQ(rings_by_now(), 1);
  EXPECT_TRUE(eventually([&] { return sleepers() == 0; }));
}

TEST_F(DoorbellTest, IsHeardAfterTheServerWasStartedAgain) {
  auto watch = awake();
  EXPECT_TRUE(eventually([&] {
    watch->wait_until(steady_clock::now());
    return sleepers() == 1;
  }));
  server.crash();
  server.start_again();
  std::jthread sleeper{[&] {
    while (store.last_sequence() < GlobalSequence{2}) {
      watch->wait_until(steady_clock::now() + far_away);
    }
  }};
  EXPECT_TRUE(eventually([&] {
    try {
      append(other);
    } catch (const Error&) {
      return false;
    }
    return true;
  }));
  sleeper.join();
}

}  // namespace
}  // namespace stela::postgres::doorbell_test
