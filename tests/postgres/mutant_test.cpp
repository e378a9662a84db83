// A fault for each rule of an append, in the database's own function: the rule's check must find
// it.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/doorbell.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace stela::postgres::mutant_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int times = 20;

void append(EventLog& log, const std::string& key) {
  const StreamId stream = StreamId::of("order", key);
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  log.append({.streams = {&one, 1}});
}

class Present final : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "present"; }
  std::string_view detail() const noexcept override { return {}; }
  void on_append(Transaction&, std::span<const StoredEvent>) override {}
};

class PostgresMutants : public ::testing::Test {
 protected:
  /// Puts `fault` in the place of `rule`, wherever stela.append_one has it.
  void break_rule(const std::string& rule, const std::string& fault) {
    const std::string function =
        "(SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.proname = 'append_one')";
    const auto quoted = [](const std::string& text) { return "$text$" + text + "$text$"; };
    ASSERT_EQ(server.ask("SELECT strpos(" + function + ", " + quoted(rule) + ") > 0"), "t") << rule;
    server.ask("DO $do$ BEGIN EXECUTE replace(" + function + ", " + quoted(rule) + ", " +
               quoted(fault) + "); END $do$");
  }

  /// Whether two processes that append at once give each event a number of its own, without a gap.
  bool keeps_order() {
    std::atomic<bool> has_failed = false;
    const auto first = store.last_sequence().value();
    const auto run = [&](Store& by, const std::string& name) {
      for (int i = 0; i < times; ++i) {
        try {
          append(by, name);
        } catch (const Error&) {
          has_failed = true;
        }
      }
    };
    {
      std::jthread one{run, std::ref(store), "one"};
      std::jthread two{run, std::ref(other), "two"};
    }
    return !has_failed && store.last_sequence().value() == first + 2 * times;
  }

  /// Whether a process that knows nothing of a participant which came meanwhile is refused.
  bool refuses_without_participant() {
    other.attach(present);
    try {
      append(store, "refused");
    } catch (const ParticipantMissing&) {
      return true;
    }
    return false;
  }

  /// Whether what one process appends wakes a follower of another that sleeps.
  bool wakes() {
    constexpr auto patience = 10s;
    append(other, "found");
    Connection listener{{.conninfo = server.url()}};
    listener.execute("LISTEN stela_" +
                     std::to_string(static_cast<std::uint64_t>(bell_lock("stela"))));
    auto watch = store.database().watch_commits();
    watch->wait_until(steady_clock::now() + patience);
    std::jthread sleeper{[&] { watch->wait_until(steady_clock::now() + patience); }};
    EXPECT_TRUE(test::eventually([&] {
      return server.ask(
                 "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
                 "mode = 'ShareLock' AND objsubid = 1") == "1";
    }));
    append(other, "woken");
    sleeper.join();
    // A notice of one's own comes behind all that were sent before.
    listener.execute("NOTIFY stela_" +
                     std::to_string(static_cast<std::uint64_t>(bell_lock("stela"))) + ", 'asked'");
    bool is_rung = false;
    while (PGnotify* const notice = PQnotifies(listener.handle())) {
      is_rung = is_rung || std::string_view{notice->extra}.empty();
      PQfreemem(notice);
    }
    return is_rung;
  }

  Present present;
  test::PostgresServer server;
  Store store = open(server.url());
  Store other = open(server.url());
};

TEST_F(PostgresMutants, OrderNeedsTheLockUntilTheCommit) {
  EXPECT_TRUE(keeps_order());
  break_rule("ignored := pg_advisory_xact_lock(order_lock);",
             "PERFORM pg_advisory_lock(order_lock);");
  break_rule("is_awaited := NOT",
             "PERFORM pg_advisory_unlock(order_lock), pg_sleep(0.005);\n"
             "  is_awaited := NOT");
  EXPECT_FALSE(keeps_order());
}

TEST_F(PostgresMutants, AProcessOfADeadEpochMayNotWrite) {
  append(store, "before");
  break_rule("SELECT NOT EXISTS (SELECT FROM stela_configuration",
             "SELECT false AND NOT EXISTS (SELECT FROM stela_configuration");
  EXPECT_FALSE(refuses_without_participant());
}

TEST_F(PostgresMutants, AProcessOfTheEpochBeforeIsRefused) {
  append(store, "before");
  EXPECT_TRUE(refuses_without_participant());
}

TEST_F(PostgresMutants, SleepersNeedTheBell) {
  EXPECT_TRUE(wakes());
  break_rule("is_awaited := NOT pg_try_advisory_xact_lock(bell);", "is_awaited := false;");
  EXPECT_FALSE(wakes());
}

}  // namespace
}  // namespace stela::postgres::mutant_test
