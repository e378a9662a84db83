#include <stela/tool/metrics.hpp>
#include <stela/tool/readiness.hpp>

#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace stela::tool::readiness_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Placed {
  static constexpr EventType event_type{"placed", 1, should_publish};
  template <class Archive>
  void serialize(Archive&) {}
};

struct Failing {
  static constexpr ProjectorType projector_type{"failing", 1};
  using Events = EventSet<Placed>;
  void create(ReadModel& model) { model.execute("CREATE TABLE {placed} (id INTEGER) STRICT"); }
  void project(ReadModel&, const Recorded<Placed>&) { throw std::runtime_error{"it broke"}; }
};

struct ReadinessOfAProcess : ::testing::Test {
  test::TempDir dir = test::TempDir::in_memory();
  stela::testing::ManualClock clock;
  Store store = sqlite::open(dir.file("shop.db"), {.clock = &clock});
  Readiness readiness{store};

  void append() { test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}}); }
  void run(const std::string& sql) { test::RawSqlite{dir.file("shop.db")}.run(sql); }
};

TEST_F(ReadinessOfAProcess, SeesAStoppedPartition) {
  EXPECT_THAT(readiness.problems(), IsEmpty()) << "there is no outbox";
  const Outbox outbox{store, {.partition_count = 4}};
  EXPECT_THAT(readiness.problems(), IsEmpty());
  run("UPDATE outbox_partitions SET stopped = 'poison', stopped_detail = '' WHERE partition = 2");
  EXPECT_THAT(readiness.problems(), ElementsAre("partition p01 is stopped (poison)"));
}

TEST_F(ReadinessOfAProcess, SeesALagOfTheOutboxIfItIsAsked) {
  const Outbox outbox{store, {}};
  append();
  clock.advance(61s);
  EXPECT_THAT((Readiness{store, {.max_lag = 1min}}.problems()),
              ElementsAre("the oldest message has been pending for 1 min 1 s"));
  EXPECT_THAT((Readiness{store, {.max_lag = 2min}}.problems()), IsEmpty());
  EXPECT_THAT((Readiness{store, {.max_lag = 1min, .outbox = false}}.problems()), IsEmpty());
}

/// It can append, and what it appends waits.
TEST_F(ReadinessOfAProcess, OutlastsAnOutageOfTheBroker) {
  const Outbox outbox{store, {}};
  append();
  for (int hour = 0; hour < 24; ++hour) {
    clock.advance(1h);
    readiness.note(RelayTick{.renewed_heartbeat = true, .broker = {BrokerState::down, "refused"}});
  }
  EXPECT_THAT(readiness.problems(), IsEmpty());
}

TEST_F(ReadinessOfAProcess, SeesALaggingAndAHaltedProjector) {
  const Readiness strict{store, {.max_lag = 1min}};
  Projections projections{store};
  projections.add(Failing{}, {.max_attempts = 1});
  append();
  clock.advance(61s);
  EXPECT_THAT(readiness.problems(), IsEmpty());
  EXPECT_THAT(strict.problems(),
              ElementsAre("projector 'failing' v1 is 1 event behind, for 1 min 1 s, and no runner "
                          "drives it"));
  Runner{projections}.run_once();
  EXPECT_THAT(readiness.problems(), ElementsAre(HasSubstr("projector 'failing' v1 is stopped")));
}

TEST_F(ReadinessOfAProcess, LeavesOutWhatOtherProgramsDoInTheDatabase) {
  const Outbox outbox{store, {}};
  Projections projections{store};
  projections.add(Failing{}, {.max_attempts = 1});
  append();
  Runner{projections}.run_once();
  run("UPDATE outbox_partitions SET stopped = 'poison', stopped_detail = ''");
  const auto stopped = HasSubstr("projector 'failing' v1 is stopped");

  const auto problems = [&](const ReadinessOptions& options) {
    return Readiness{store, options}.problems();
  };
  EXPECT_THAT(problems({}), ElementsAre("partition all is stopped (poison)", stopped));
  EXPECT_THAT(problems({.outbox = false}), ElementsAre(stopped));
  EXPECT_THAT(problems({.outbox = false, .projectors = {{"failing"}}}), ElementsAre(stopped));
  EXPECT_THAT(problems({.outbox = false, .projectors = {{"mailing"}}}),
              ElementsAre("projector 'mailing' isn't in the database"));
  EXPECT_THAT(problems({.outbox = false, .projectors = std::vector<std::string>{}}), IsEmpty());
}

/// Of a service that writes for seconds: who asks it isn't in line with its writers.
TEST_F(ReadinessOfAProcess, IsToldWhileATransactionOfAnotherThreadIsOpen) {
  const Outbox outbox{store, {}};
  PrometheusMetrics metrics;
  const Subscription watching = metrics.watch(store);
  store.transact([&](Transaction&) {
    std::async(std::launch::async, [&] {
      EXPECT_THAT(readiness.problems(), IsEmpty());
      EXPECT_THAT(metrics.text(), HasSubstr("stela_store_up 1\n"));
      EXPECT_EQ(OutboxOperations{store}.status().pending, 0);
    }).get();
  });
}

TEST_F(ReadinessOfAProcess, SeesADatabaseThatDoesNotAnswer) {
  const Outbox outbox{store, {}};
  run("DROP TABLE outbox_partitions");
  ASSERT_FALSE(readiness.problems().empty());
  EXPECT_THAT(readiness.problems().front(), HasSubstr("database: "));
}

TEST_F(ReadinessOfAProcess, SeesARelayThatCanNotRenewItsHeartbeat) {
  Readiness strict{store, {.heartbeat_ttl = 1ms}};
  EXPECT_THAT(strict.problems(), IsEmpty()) << "it has no relay";
  strict.note(RelayTick{.renewed_heartbeat = true});
  EXPECT_TRUE(test::eventually([&] { return !strict.problems().empty(); }));
  EXPECT_THAT(strict.problems(), ElementsAre(HasSubstr("heartbeat: none for ")));
  readiness.note(RelayTick{.renewed_heartbeat = true});
  EXPECT_THAT(readiness.problems(), IsEmpty());
  readiness.note(RelayTick{.store_refusal = "permission denied"});
  EXPECT_THAT(readiness.problems(), ElementsAre("database: permission denied"));
}

TEST_F(ReadinessOfAProcess, SaysWhichOfItsRelaysIsAtFault) {
  Readiness strict{store, {.heartbeat_ttl = 1ms, .needs_broker = true}};
  strict.note(RelayTick{.broker = {BrokerState::connected}}, "a");
  strict.note(RelayTick{.broker = {BrokerState::down, "refused"}}, "b");
  EXPECT_TRUE(test::eventually([&] { return strict.problems().size() == 3; }));
  EXPECT_THAT(strict.problems(), ElementsAre(HasSubstr("relay a: heartbeat: none for "),
                                             HasSubstr("relay b: heartbeat: none for "),
                                             "relay b: broker: down: refused"));
  readiness.note(RelayTick{.store_refusal = "permission denied"}, "a");
  readiness.note(RelayTick{}, "b");
  EXPECT_THAT(readiness.problems(), ElementsAre("relay a: database: permission denied"));
}

TEST_F(ReadinessOfAProcess, StaysWithoutABrokerUnlessItNeedsOne) {
  Readiness worker{store, {.needs_broker = true}};
  for (Readiness* each : {&readiness, &worker}) {
    each->note(RelayTick{.broker = {BrokerState::down, "refused"}});
    each->note("shipping", {BrokerState::misconfigured, "no stream"});
  }
  EXPECT_THAT(readiness.problems(),
              ElementsAre("broker of consumer shipping: misconfigured: no stream"));
  EXPECT_THAT(worker.problems(),
              ElementsAre("broker: down: refused",
                          "broker of consumer shipping: misconfigured: no stream"));
}

TEST_F(ReadinessOfAProcess, RefusesTimesThatMakeNoSense) {
  const auto problem = [&](const ReadinessOptions& options) {
    return test::message_of<UsageError>([&] { Readiness{store, options}; });
  };
  EXPECT_EQ(problem({.max_lag = -1ms}), "max_lag is -1 ms; it must be 0 ms or more");
  EXPECT_EQ(problem({.heartbeat_ttl = 0ms}),
            "heartbeat_ttl is 0 ms; it must be above 0, and at most 8760 h");
}

TEST_F(ReadinessOfAProcess, EndsWithALoop) {
  readiness.fail("the relay ended: a newer Stela has migrated the database");
  EXPECT_THAT(readiness.problems(),
              ElementsAre("the relay ended: a newer Stela has migrated the database"));
}

}  // namespace
}  // namespace stela::tool::readiness_test
