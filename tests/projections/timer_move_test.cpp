// Timers that move with their store to another database.
#include "projections/bookings.hpp"
#include "support/engine.hpp"
#include "support/messages.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace stela::timer_move_test {
namespace {

using namespace std::chrono_literals;
using test::DueHook;
using test::history;
using test::message_of;
using test::pay;
using test::PaymentDeadline;
using test::request;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MovedTimers : public ::testing::Test {
 protected:
  Store open(const std::string& name) { return test::open_at(dir_.file(name), {.clock = &clock_}); }
  RunnerTick run(Store& store, DueHook on_due = {}) {
    Projections projections{store};
    projections.add_process(PaymentDeadline{std::move(on_due)},
                            {.handling = {.max_attempts = 2, .retry_backoff = 1min}});
    return Runner{projections}.run_once();
  }
  static std::string exported(Store& store) {
    const auto state = projection_state();
    StateTransfer* const states[] = {state.get()};
    std::ostringstream out;
    EXPECT_TRUE(export_store(store, out, {.states = states}).finished);
    return out.str();
  }
  static void import(Store& store, const std::string& lines) {
    const auto state = projection_state();
    StateTransfer* const states[] = {state.get()};
    std::istringstream in{lines};
    EXPECT_TRUE(import_store(store, in, {.states = states}).finished);
  }
  Store moved(Store& store, const std::string& name) {
    {
      Store into = open(name);
      import(into, exported(store));
    }
    return open(name);
  }
  static std::vector<std::string> holds(Store& store) {
    std::vector<std::string> all;
    for (const TimerHold& hold : TimerOperations{store}.holds()) all.push_back(hold.detail);
    return all;
  }

  const test::TempDir dir_;
  testing::ManualClock clock_;
};

TEST_F(MovedTimers, FireOnceInTheOtherStoreAfterItsEvents) {
  Store first = open("first.db");
  run(first);
  for (const char* const key : {"1", "2", "3"}) request(first, key);
  run(first);
  pay(first, "2");
  clock_.advance(10min);

  Store second = moved(first, "second.db");
  clock_.advance(10min);
  EXPECT_EQ(run(second).timers_fired, 0);
  EXPECT_THAT(holds(second), ElementsAre(HasSubstr("this store was imported at 2026-01-01T00:10")));
  TimerOperations{second}.resume();
  EXPECT_EQ(run(second).timers_fired, 2);

  EXPECT_THAT(history(second), ElementsAre("1 requested", "2 requested", "3 requested", "2 paid",
                                           "1 cancelled", "3 cancelled"));
  clock_.advance(24h);
  EXPECT_EQ(run(second).timers_fired, 0);
}

TEST_F(MovedTimers, AreTheSameInTheOtherStore) {
  Store first = open("first.db");
  run(first);
  {
    const ContextScope scope{{.correlation_id = "checkout", .actor = "web"}};
    for (const char* const key : {"1", "2", "3"}) request(first, key);
  }
  request(first, "4", 60);
  const auto fail = [](stela::Process& process, const std::string&) {
    if (process.key() != "booking-3") throw std::runtime_error{"no \xff"};
  };
  run(first, fail);
  clock_.advance(15min);
  run(first, fail);
  TimerOperations{first, "ann"}.cancel({"payment_deadline", "booking-2", "not_paid"});
  clock_.advance(1min);
  EXPECT_EQ(run(first, fail).timers_parked, 1);
  TimerOperations{first, "ann"}.hold("we move");

  Store second = moved(first, "second.db");

  EXPECT_EQ(exported(second), exported(first));
  EXPECT_THAT(holds(second), ElementsAre(HasSubstr("was imported"), "we move"));
  const auto timers = TimerOperations{second}.list();
  ASSERT_THAT(timers, SizeIs(2));
  EXPECT_EQ(timers[0].state, TimerState::parked);
  EXPECT_EQ(timers[0].attempts, 2);
  EXPECT_EQ(timers[0].actor, "web");
  EXPECT_EQ(timers[1].payload, R"({"booking":"4"})");
  EXPECT_THAT(TimerOperations{second}.actions(), SizeIs(2));
  const auto processes = TimerOperations{second}.processes();
  ASSERT_THAT(processes, SizeIs(1));
  EXPECT_EQ(processes[0].fired, 1);
  TimerOperations{second}.resume();
  TimerOperations{second}.retry("payment_deadline");
  EXPECT_EQ(run(second).timers_fired, 1);
}

class Counting {
 public:
  static constexpr ReactionType reaction_type{"counting"};
  using Events = EventSet<test::Requested>;
  Counting(std::vector<std::string>& seen, const bool& fails) : seen_{&seen}, fails_{&fails} {}

  void react(UnitOfWork&, const Recorded<test::Requested>& e) {
    if (*fails_ && e.stream().key() == "2") throw std::runtime_error{"not this one"};
    seen_->emplace_back(e.stream().key());
  }

 private:
  std::vector<std::string>* seen_;
  const bool* fails_;
};

TEST_F(MovedTimers, LetAReactionContinueAndKeepItsParkedEvents) {
  std::vector<std::string> seen;
  bool fails = true;
  const auto run_reaction = [&](Store& store) {
    seen.clear();
    Projections projections{store};
    projections.add_reaction(Counting{seen, fails},
                             {.start = ReactionStart::beginning,
                              .handling = {.on_error = OnError::park, .max_attempts = 1}});
    Runner{projections}.run_once();
  };
  Store first = open("first.db");
  for (const char* const key : {"1", "2", "3"}) request(first, key);
  run_reaction(first);

  Store second = moved(first, "second.db");
  EXPECT_THAT(holds(second), IsEmpty()) << "no timer is set";
  request(second, "4");
  run_reaction(second);
  EXPECT_THAT(seen, ElementsAre("4"));
  fails = false;
  ProjectionOperations operations{second};
  ASSERT_THAT(operations.parked("counting"), SizeIs(1));
  operations.retry("counting", GlobalSequence{2});
  run_reaction(second);
  EXPECT_THAT(seen, ElementsAre("2"));
}

TEST_F(MovedTimers, AreNotExportedWhileARunnerDrivesThem) {
  // Leases are by the clock of the host.
  Store first = test::open_at(dir_.file("first.db"));
  run(first);
  request(first, "1");
  Projections projections{first};
  projections.add_process(PaymentDeadline{});
  Runner runner{projections, {.worker = "busy"}};
  std::string refusal;
  std::stop_source stop;
  runner.on_tick([&](const RunnerTick&) {
    if (stop.stop_requested()) return;
    refusal = message_of<UsageError>([&] { exported(first); });
    stop.request_stop();
  });
  runner.run(stop.get_token());

  EXPECT_THAT(refusal, HasSubstr("runner 'busy' drives 'payment_deadline'; stop all runners"));
  EXPECT_THAT(exported(first), HasSubstr("projection_timers"));
}

TEST_F(MovedTimers, AreNotImportedWithoutTheEndOfTheirExport) {
  Store first = open("first.db");
  run(first);
  request(first, "1");
  run(first);
  const std::string lines = exported(first);
  Store second = open("second.db");

  EXPECT_THAT(message_of<UsageError>(
                  [&] { import(second, lines.substr(0, lines.rfind("{\"state\":\"end\""))); }),
              HasSubstr("the end of the export is missing"));
  EXPECT_THAT(TimerOperations{second}.list(), IsEmpty());
  EXPECT_THAT(TimerOperations{second}.processes(), IsEmpty());
  import(second, lines);
  EXPECT_THAT(TimerOperations{second}.list(), SizeIs(1));
}

TEST_F(MovedTimers, DoNotReplaceThoseOfAStoreThatHasProcesses) {
  Store first = open("first.db");
  run(first);
  request(first, "1");
  run(first);
  Store second = open("second.db");
  run(second);

  EXPECT_THAT(message_of<UsageError>([&] { import(second, exported(first)); }),
              HasSubstr("has reactions or processes already"));
  EXPECT_THAT(TimerOperations{second}.list(), IsEmpty());
}

}  // namespace
}  // namespace stela::timer_move_test
