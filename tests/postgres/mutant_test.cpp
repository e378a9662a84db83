// Faults in the rules of an append: each rule's check must find its fault. That of the bell stands
// with the bell's tests.
#include "postgres/mutant.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace stela::postgres::mutant_test {
namespace {

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

  Present present;
  test::PostgresServer server;
  Store store = open(server.url());
  Store other = open(server.url());
};

TEST_F(PostgresMutants, OrderNeedsTheLockUntilTheCommit) {
  EXPECT_TRUE(keeps_order());
  break_append_one(server, "ignored := pg_advisory_xact_lock(order_lock);",
                   "PERFORM pg_advisory_lock(order_lock);");
  break_append_one(server, "is_awaited := NOT",
                   "PERFORM pg_advisory_unlock(order_lock), pg_sleep(0.005);\n"
                   "  is_awaited := NOT");
  EXPECT_FALSE(keeps_order());
}

TEST_F(PostgresMutants, AProcessOfADeadEpochMayNotWrite) {
  append(store, "before");
  break_append_one(server, "SELECT NOT EXISTS (SELECT FROM stela_configuration",
                   "SELECT false AND NOT EXISTS (SELECT FROM stela_configuration");
  EXPECT_FALSE(refuses_without_participant());
}

TEST_F(PostgresMutants, AProcessOfTheEpochBeforeIsRefused) {
  append(store, "before");
  EXPECT_TRUE(refuses_without_participant());
}

}  // namespace
}  // namespace stela::postgres::mutant_test
