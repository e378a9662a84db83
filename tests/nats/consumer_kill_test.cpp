// The consumer is killed at every step of its work, and at any time: the effect of each event
// happens once.
#include "nats/killed_pairs.hpp"
#include "nats/shop.hpp"
#include "support/fault_vfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <ostream>
#include <random>

namespace stela::consumer_kill_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::IsEmpty;

constexpr int orders = 60;

/// Where a consumer dies.
enum class Step : int {
  never,
  before_the_transaction,
  in_the_handler,
  before_the_commit,
  after_the_commit,
  after_the_report,
};

void PrintTo(Step step, std::ostream* out) {
  constexpr const char* names[] = {"never",
                                   "before_the_transaction",
                                   "in_the_handler",
                                   "before_the_commit",
                                   "after_the_commit",
                                   "after_the_report"};
  *out << names[static_cast<int>(step)];
}

struct Visits {
  /// How often the consumers have come to the step, all together.
  std::atomic<int> visits{0};
};

void die() {
  raise(SIGKILL);
}

/// The consumer looks at it twice before it fetches, and again with its messages in its hands.
class DeadlyClock final : public Clock {
 public:
  explicit DeadlyClock(Visits& progress) noexcept : progress_{progress} {}
  Timestamp now() const override { return system_clock().now(); }
  std::chrono::steady_clock::time_point steady_now() const override {
    if (++looks_ == 3 && ++progress_.visits <= 3) die();
    return system_clock().steady_now();
  }

 private:
  Visits& progress_;
  mutable std::atomic<int> looks_{0};
};

/// What one process of consumers does until it is killed.
struct Consuming {
  std::string database;
  std::string url;
  Step step = Step::never;
  /// The event of this stream kills whoever handles it.
  std::string fatal = {};
  /// The n-th write to the database kills it.
  int fatal_write = 0;
  static constexpr int max_attempts = 2;

  void run(Visits& progress) const {
    const DeadlyClock deadly{progress};
    const bool by_clock = step == Step::before_the_transaction;
    test::DieAtNthWrite death{fatal_write};
    const test::FaultVfs vfs{death};
    Ledger ledger{database, {.clock = by_clock ? &deadly : &system_clock(), .vfs = vfs.name()}};
    nats::Consumer consumer{
        ledger.store,
        {.url = url,
         .name = "billing",
         .stream = "SHOP",
         .batch_size = 7,
         // A process that is killed at one step is often killed while it handles the same message.
         .max_attempts = fatal.empty() ? 1'000 : max_attempts}};
    const auto at = [this, &progress](Step reached) {
      // Not every time, so that there is progress between deaths: a batch has seven messages.
      const int rarely = step == Step::in_the_handler ? 17 : 3;
      if (reached == step && ++progress.visits % rarely == 0) die();
    };
    consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
      if (placed.stream().name() == fatal) die();
      Ledger::note(transaction, placed);
      at(Step::in_the_handler);
      if (step == Step::before_the_commit) {
        sqlite3_commit_hook(
            sqlite::handle(transaction),
            [](void* self) {
              if (++static_cast<Visits*>(self)->visits % 3 == 0) die();
              return 0;
            },
            &progress);
      }
      UnitOfWork unit{transaction};
      unit.append(StreamId::of("invoice", placed.stream().key()), ExpectedVersion::none(),
                  OrderShipped{"post"});
      unit.commit();
    });
    const Subscription committed =
        ledger.store.on_commit([&](const CommitNotice&) { at(Step::after_the_commit); });
    consumer.on_tick([&](const nats::ConsumerTick& tick) {
      if (tick != nats::ConsumerTick{}) at(Step::after_the_report);
    });
    consumer.run({});
  }
};

class KilledConsumer : public ::testing::Test {
 protected:
  void SetUp() override {
    // In a process of its own: a fork is only sound before there are threads.
    test::Process publisher{[this] {
      test::Shop shop{dir.file("shop.db"), server.url()};
      for (int i = 0; i < orders; ++i) shop.place(std::to_string(i));
      shop.publish();
    }};
    ASSERT_EQ(publisher.wait(), 0);
    Ledger{database}.lines();
  }

  std::int64_t count(const std::string& sql) {
    test::RawSqlite raw{database};
    // After a death somebody may be recovering the log.
    sqlite3_busy_timeout(raw.handle(), 10'000);
    return raw.integer(sql);
  }
  /// Runs one process after the other, each until it is killed or `done`. How many died.
  int run_until(const Consuming& consuming, const std::function<bool()>& done) {
    int deaths = 0;
    const bool reached = test::eventually(
        [&] {
          test::Process process{[&] { consuming.run(*progress); }};
          test::eventually([&] { return !process.is_running() || done(); }, 20s);
          if (process.is_running()) {
            process.kill();
            return done();
          }
          EXPECT_EQ(process.wait(), 128 + SIGKILL);
          ++deaths;
          return done();
        },
        120s);
    EXPECT_TRUE(reached);
    return deaths;
  }
  bool is_done() { return count("SELECT count(*) FROM ledger") >= orders; }

  void expect_each_effect_once() {
    EXPECT_EQ(count("SELECT count(*) FROM ledger"), orders);
    EXPECT_EQ(count("SELECT count(DISTINCT line) FROM ledger"), orders);
    EXPECT_EQ(count("SELECT count(*) FROM inbox_positions"), orders);
    EXPECT_EQ(count("SELECT position FROM inbox_readers"), orders);
    EXPECT_EQ(count("SELECT count(*) FROM events"), orders);
    EXPECT_EQ(count("SELECT count(*) FROM inbox_parked"), 0);
    EXPECT_THAT(test::RawSqlite{database}.rows("PRAGMA integrity_check"),
                ::testing::ElementsAre("ok"));
  }

  test::TempDir dir;
  test::NatsServer server;
  const std::string database = dir.file("billing.db");
  test::Shared<Visits> progress;
};

class Killing : public KilledConsumer, public ::testing::WithParamInterface<Step> {};

TEST_P(Killing, TheConsumerAtOneStepLeavesEachEffectOnce) {
  const Consuming consuming{database, server.url(), GetParam()};

  const int deaths = run_until(consuming, [this] { return is_done(); });

  EXPECT_GE(deaths, 1);
  expect_each_effect_once();
}

INSTANTIATE_TEST_SUITE_P(Steps, Killing,
                         ::testing::Values(Step::before_the_transaction, Step::in_the_handler,
                                           Step::before_the_commit, Step::after_the_commit,
                                           Step::after_the_report),
                         ::testing::PrintToStringParamName());

class KillingHandler : public KilledConsumer {};

TEST_F(KillingHandler, IsParkedAndLetsOtherMessagesPass) {
  const Consuming consuming{.database = database, .url = server.url(), .fatal = "order-13"};
  const auto parked_messages = [this] {
    return count("SELECT count(*) FROM sqlite_schema WHERE name = 'inbox_parked'") > 0
               ? count("SELECT count(*) FROM inbox_parked WHERE retry = 0")
               : 0;
  };

  const int deaths = run_until(consuming, [&] {
    return parked_messages() == 1 && count("SELECT count(*) FROM ledger") == orders - 1;
  });

  // The first is nobody's: it isn't known of what the process died.
  EXPECT_EQ(deaths, 1 + Consuming::max_attempts);
  auto store = sqlite::open(database);
  nats::InboxOperations inbox{store};
  const nats::ParkedMessage parked = inbox.parked().at(0);
  EXPECT_EQ(parked.headers.at("ce-subject"), "order-13");
  EXPECT_EQ(parked.attempts, Consuming::max_attempts);
  EXPECT_THAT(parked.error, ::testing::StartsWith("the process ended"));
}

TEST_F(KillingHandler, IsRetriedOnceOnRequest) {
  const Consuming consuming{.database = database, .url = server.url(), .fatal = "order-13"};
  const auto parked_after = [this](int attempts) {
    return [this, attempts] {
      return count("SELECT count(*) FROM sqlite_schema WHERE name = 'inbox_parked'") > 0 &&
             count("SELECT count(*) FROM inbox_parked WHERE retry = 0 AND attempts = " +
                   std::to_string(attempts)) == 1;
    };
  };
  run_until(consuming, parked_after(Consuming::max_attempts));
  test::RawSqlite{database}.run("UPDATE inbox_parked SET retry = 1");

  const int deaths = run_until(consuming, parked_after(Consuming::max_attempts + 1));

  EXPECT_LE(deaths, 1);
}

class KillingAtAnyTime : public KilledConsumer {};

TEST_F(KillingAtAnyTime, LeavesEachEffectOnce) {
  std::minstd_rand random{20261121};
  std::uniform_int_distribution<int> fatal_write{1, 120};
  const auto next = [&] {
    Consuming one{.database = database, .url = server.url()};
    one.fatal_write = fatal_write(random);
    return [this, one] { one.run(*progress); };
  };

  const auto pairs = test::run_killed_pairs(next, [this] { return is_done(); });

  EXPECT_TRUE(pairs.is_done);
  EXPECT_GE(pairs.deaths, 2);
  expect_each_effect_once();
}

}  // namespace
}  // namespace stela::consumer_kill_test
