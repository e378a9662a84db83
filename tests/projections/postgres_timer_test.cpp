// Timers on PostgreSQL: others append while one fires.
#include "projections/alarms.hpp"
#include "projections/models.hpp"
#include "support/engine.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore/postgres.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

namespace stela::postgres_timer_test {
namespace {

using namespace std::chrono_literals;
using test::AlarmCleared;
using test::AlarmHistory;
using test::AlarmRang;
using test::AlarmSet;
using test::append_alarm;
using test::micros;
using test::PostgresServer;
using test::Ring;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Alarms whose events can be seen as they are handled.
class WatchedAlarms {
 public:
  static constexpr ProcessType process_type{"alarms"};
  using Events = EventSet<AlarmSet, AlarmCleared>;
  using Timers = TimerSet<Ring>;

  explicit WatchedAlarms(std::function<void(const std::string& key)> on_set)
      : on_set_{std::move(on_set)} {}

  void react(stela::Process& process, const Recorded<AlarmSet>& e) {
    on_set_(process.key());
    process.set(Ring{e->due}, Timestamp{std::chrono::microseconds{e->due}});
  }
  void react(stela::Process& process, const Recorded<AlarmCleared>&) { process.clear<Ring>(); }
  void due(stela::Process& process, const Ring& timer) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(),
                          AlarmRang{timer.due, micros(system_clock().now())});
  }

 private:
  std::function<void(const std::string& key)> on_set_;
};

void set_alarm(Store& store, int key, Timestamp due) {
  append_alarm(store, key, AlarmSet{micros(due)});
}

TEST(PostgresTimer, FiresAfterEveryEventThatHasALowerSequence) {
  const PostgresServer server;
  Store store = postgres::open(server.url());
  Store other = postgres::open(server.url());
  std::future<void> clearing;
  Projections projections{store};
  projections.add_process(WatchedAlarms{[&](const std::string& key) {
                            // Between the passes of the runner, and then inside the transaction
                            // that fires alarm 0.
                            if (key == "alarm-1") set_alarm(other, 2, system_clock().now() + 24h);
                            if (key != "alarm-2" || clearing.valid()) return;
                            clearing = std::async(std::launch::async,
                                                  [&] { append_alarm(other, 0, AlarmCleared{}); });
                            (void)clearing.wait_for(500ms);
                          }},
                          {.start = ReactionStart::beginning});
  Runner runner{projections};
  // So late that it is set, and not fired, by the first pass of a busy machine.
  const Timestamp due = system_clock().now() + 2s;
  set_alarm(store, 0, due);
  runner.run_once();
  std::this_thread::sleep_until(due + 10ms);

  set_alarm(store, 1, system_clock().now() + 24h);
  EXPECT_EQ(runner.run_once().timers_fired, 1);

  clearing.get();
  const AlarmHistory history{store};
  EXPECT_THAT(history.flaws(), IsEmpty());
  EXPECT_EQ(history.rang(), 1);
}

/// Alarms whose timers add an event by SQL, and then `append`.
class ForgingAlarms {
 public:
  static constexpr ProcessType process_type{"alarms"};
  using Events = EventSet<AlarmSet>;
  using Timers = TimerSet<Ring>;

  explicit ForgingAlarms(bool appends) : appends_{appends} {}

  void react(stela::Process& process, const Recorded<AlarmSet>& e) {
    process.set(Ring{e->due}, Timestamp{std::chrono::microseconds{e->due}});
  }
  void due(stela::Process& process, const Ring& timer) {
    process.unit().in_transaction(
        [](Transaction& transaction) { Sql{transaction}.query("SELECT forge()"); });
    if (!appends_) return;
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(),
                          AlarmRang{timer.due, 0});
  }

 private:
  bool appends_;
};

TEST(PostgresTimer, HaltsOnlyItsProcessIfItsSqlAddsEvents) {
  for (const bool appends : {false, true}) {
    const PostgresServer server;
    Store store = postgres::open(server.url());
    test::run_on(server, test::sql_that_makes_forge);
    Projections projections{store};
    projections.add_process(ForgingAlarms{appends}, {.start = ReactionStart::beginning});
    projections.add(test::Counts{});
    set_alarm(store, 0, system_clock().now());
    Runner runner{projections};

    EXPECT_EQ(runner.run_once().stopped, 1);

    EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
    for (const ProjectorStatus& status : ProjectionOperations{store}.status()) {
      EXPECT_EQ(status.stopped, status.name == "alarms");
      EXPECT_EQ(status.position, GlobalSequence{1});
      EXPECT_THAT(status.error,
                  HasSubstr(status.stopped ? "all of the transaction is rolled back" : ""));
    }
    set_alarm(store, 1, system_clock().now());
    EXPECT_EQ(runner.run_once().stopped, 0);
  }
}

}  // namespace
}  // namespace stela::postgres_timer_test
