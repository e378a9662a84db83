// What operators ask of timers, and do to them.
#include "projections/bookings.hpp"
#include "projections/models.hpp"
#include "support/engine.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/projections/timers.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::timer_operations_test {
namespace {

using namespace std::chrono_literals;
using test::history;
using test::message_of;
using test::PaymentDeadline;
using test::request;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Desk {
  explicit Desk(test::DueHook on_due = {}, int max_attempts = 1) {
    projections.add_process(PaymentDeadline{std::move(on_due)},
                            {.handling = {.max_attempts = max_attempts}});
    runner.emplace(projections);
  }
  RunnerTick run() { return runner->run_once(); }
  RunnerTick run_after(std::chrono::microseconds time) {
    clock.advance(time);
    return run();
  }
  static TimerName timer(const std::string& key) {
    return {"payment_deadline", "booking-" + key, "not_paid"};
  }
  std::vector<std::string> done() {
    std::vector<std::string> all;
    for (const OperatorAction& action : timers.actions()) {
      all.push_back(action.who + ": " + action.what + ' ' + action.detail);
    }
    return all;
  }
  std::vector<std::string> keys(const TimerQuery& query) {
    std::vector<std::string> all;
    for (const TimerStatus& one : timers.list(query)) all.push_back(one.name.key);
    return all;
  }

  testing::ManualClock clock;
  Store store = test::open_empty({.clock = &clock});
  Projections projections{store};
  std::optional<Runner> runner;
  TimerOperations timers{store, "ann"};
};

TEST(TimerOperations, ListTimersInOrderOfDueTime) {
  Desk desk;
  request(desk.store, "a", 30);
  request(desk.store, "b", 10);
  request(desk.store, "c", 20);
  desk.run();

  EXPECT_THAT(desk.keys({}), ElementsAre("booking-b", "booking-c", "booking-a"));
  EXPECT_THAT(desk.keys({.key = "booking-c"}), ElementsAre("booking-c"));
  EXPECT_THAT(desk.keys({.kind = "remind"}), IsEmpty());
  EXPECT_THAT(desk.keys({.process = "another"}), IsEmpty());
  EXPECT_THAT(desk.keys({.due = true}), IsEmpty());
  desk.clock.advance(10min);
  EXPECT_THAT(desk.keys({.due = true}), ElementsAre("booking-b"));
  EXPECT_THAT(desk.keys({.overdue = true}), IsEmpty());
  desk.clock.advance(1min);
  EXPECT_THAT(desk.keys({.overdue = true}), ElementsAre("booking-b"));
  EXPECT_THROW(desk.timers.list({.limit = 0}), UsageError);
}

TEST(TimerOperations, ListTimersPageByPage) {
  Desk desk;
  for (const char* const key : {"a", "b", "c"}) request(desk.store, key, 10);
  desk.run();

  const auto first = desk.timers.list({.limit = 2});
  EXPECT_THAT(desk.keys({.after = first.back(), .limit = 2}), ElementsAre("booking-c"));
}

/// Another process, which comes first by its name.
class Feedback {
 public:
  static constexpr ProcessType process_type{"feedback"};
  using Events = EventSet<test::Requested>;
  using Timers = TimerSet<test::Remind>;

  void react(Process& process, const Recorded<test::Requested>& e) {
    process.set(test::Remind{}, e.recorded_at() + std::chrono::minutes{e->minutes} + 5min);
  }
  void due(Process&, const test::Remind&) {}
};

TEST(TimerOperations, ListTimersOfAllStatesAndProcessesInOrderOfDueTime) {
  // Each is tried twice, and then parked.
  Desk desk{[](Process&, const std::string&) { throw std::runtime_error{"no"}; }, 2};
  Projections others{desk.store};
  others.add_process(Feedback{});
  Runner other{others};
  request(desk.store, "a", 10);
  request(desk.store, "b", 20);
  request(desk.store, "c", 30);
  desk.run();
  other.run_once();
  desk.run_after(10min);
  desk.run_after(10min);

  const std::vector<std::string> all{"booking-a not_paid parked",  "booking-a remind pending",
                                     "booking-b not_paid pending", "booking-b remind pending",
                                     "booking-c not_paid pending", "booking-c remind pending"};
  const auto in_words = [](const TimerStatus& timer) {
    return timer.name.key + ' ' + timer.name.kind + ' ' + std::string{to_string(timer.state)};
  };
  std::vector<std::string> at_once, one_by_one;
  for (const TimerStatus& timer : desk.timers.list()) at_once.push_back(in_words(timer));
  TimerQuery query{.limit = 1};
  for (auto page = desk.timers.list(query); !page.empty(); page = desk.timers.list(query)) {
    one_by_one.push_back(in_words(page.front()));
    query.after = page.front();
  }
  EXPECT_EQ(at_once, all);
  EXPECT_EQ(one_by_one, all);
  EXPECT_EQ(desk.timers.list()[2].attempts, 1) << "it is tried again";
  EXPECT_THAT(desk.keys({.state = TimerState::parked}), ElementsAre("booking-a"));
  EXPECT_THAT(desk.keys({.process = "feedback"}),
              ElementsAre("booking-a", "booking-b", "booking-c"));
  EXPECT_THAT(desk.keys({.due = true}), ElementsAre("booking-a", "booking-b"));
  EXPECT_THAT(desk.keys({.due_since = testing::ManualClock::start + 25min,
                         .due_until = testing::ManualClock::start + 30min}),
              ElementsAre("booking-b", "booking-c"));
}

TEST(TimerOperations, ShowWhatIsKnownOfATimer) {
  Desk desk;
  {
    const ContextScope scope{{.correlation_id = "checkout", .actor = "web"}};
    request(desk.store, "1");
  }
  desk.run();

  const auto timer = desk.timers.show(Desk::timer("1"));
  ASSERT_TRUE(timer);
  EXPECT_EQ(timer->state, TimerState::pending);
  EXPECT_EQ(timer->due_at, testing::ManualClock::start + 15min);
  EXPECT_EQ(timer->correlation_id, "checkout");
  EXPECT_EQ(timer->actor, "web");
  EXPECT_EQ(timer->payload, R"({"booking":"1"})");
  EXPECT_FALSE(desk.timers.show(Desk::timer("2")));
  EXPECT_FALSE(desk.timers.show({}));
}

TEST(TimerOperations, MoveATimer) {
  Desk desk;
  request(desk.store, "1");
  desk.run();

  desk.timers.move(Desk::timer("1"), testing::ManualClock::start + 1h);

  EXPECT_EQ(desk.run_after(59min).timers_fired, 0);
  EXPECT_EQ(desk.run_after(1min).timers_fired, 1);
  EXPECT_THAT(desk.done(),
              ElementsAre("ann: move timer 'not_paid' of 'booking-1' (process 'payment_deadline') "
                          "to 2026-01-01T01:00:00.000000Z"));
}

TEST(TimerOperations, RefuseToMoveATimerBehindTheYear9999) {
  Desk desk;
  request(desk.store, "1");
  desk.run();

  EXPECT_THAT(message_of<UsageError>([&] { desk.timers.move(Desk::timer("1"), Timestamp::max()); }),
              HasSubstr("after the year 9999"));
  EXPECT_THAT(desk.done(), IsEmpty());
}

TEST(TimerOperations, CancelATimer) {
  Desk desk;
  request(desk.store, "1");
  desk.run();

  desk.timers.cancel(Desk::timer("1"));

  EXPECT_EQ(desk.run_after(1h).timers_fired, 0);
  EXPECT_THAT(desk.done().front(), HasSubstr("ann: cancel timer 'not_paid' of 'booking-1'"));
  EXPECT_THAT(message_of<NotFound>([&] { desk.timers.cancel(Desk::timer("1")); }),
              HasSubstr("isn't set: it fired, or was cleared"));
}

TEST(TimerOperations, FireATimerNow) {
  Desk desk;
  request(desk.store, "1");
  request(desk.store, "2");
  desk.run();

  desk.timers.fire(Desk::timer("2"));

  EXPECT_EQ(desk.run().timers_fired, 1);
  EXPECT_THAT(history(desk.store), ElementsAre("1 requested", "2 requested", "2 cancelled"));
}

TEST(TimerOperations, RetryParkedTimers) {
  bool fails = true;
  Desk desk{[&](Process&, const std::string&) {
    if (fails) throw std::runtime_error{"no"};
  }};
  request(desk.store, "1");
  request(desk.store, "2");
  desk.run();
  EXPECT_EQ(desk.run_after(15min).timers_parked, 2);
  EXPECT_THAT(desk.keys({.state = TimerState::parked}), ElementsAre("booking-1", "booking-2"));
  EXPECT_EQ(desk.timers.show(Desk::timer("1"))->error, "no");
  fails = false;

  EXPECT_EQ(desk.timers.retry("payment_deadline", "remind"), 0);
  EXPECT_EQ(desk.timers.retry("payment_deadline"), 2);

  EXPECT_EQ(desk.run().timers_fired, 2);
  EXPECT_THROW(desk.timers.retry("nobody"), NotFound);
}

TEST(TimerOperations, CountTheTimersOfAProcess) {
  Desk desk{[](stela::Process& process, const std::string&) {
    if (process.key() == "booking-1") throw std::runtime_error{"no"};
  }};
  for (const auto& [key, minutes] : {std::pair{"1", 10}, {"2", 10}, {"3", 30}, {"4", 31}}) {
    request(desk.store, key, minutes);
  }
  desk.run();
  desk.run_after(10min);
  desk.clock.advance(22min);

  const auto all = desk.timers.processes();
  ASSERT_EQ(all.size(), 1U);
  const ProcessStatus& process = all.front();
  EXPECT_EQ(process.name, "payment_deadline");
  EXPECT_EQ(process.pending, 2);
  EXPECT_EQ(process.due, 2);
  EXPECT_EQ(process.overdue, 2);
  EXPECT_EQ(process.oldest_due, 2min);
  EXPECT_EQ(process.next_due_at, testing::ManualClock::start + 30min);
  EXPECT_EQ(process.fired, 1);
  EXPECT_EQ(process.failed, 1);
  EXPECT_EQ(process.parked, 1);
  EXPECT_EQ(process.lag, 0s);
}

/// So many bookings as the first one, in few transactions.
void request_many(Desk& desk, std::int64_t bookings) {
  std::string payload;
  for (const StoredEvent& event : desk.store.read_all({.limit = 1})) payload = event.payload;
  const NewEvent requested{.type = "booking.requested", .payload = payload};
  constexpr std::int64_t at_once = 1'000;
  for (std::int64_t i = 0; i < bookings; i += at_once) {
    std::vector<StreamId> streams;
    for (std::int64_t j = i; j < std::min(i + at_once, bookings); ++j) {
      streams.push_back(StreamId::of("booking", "copy-" + std::to_string(j)));
    }
    std::vector<StreamAppend> appends;
    for (const StreamId& stream : streams) {
      appends.push_back({stream, ExpectedVersion::none(), {&requested, 1}});
    }
    desk.store.append({.streams = appends});
  }
  while (desk.timers.processes().at(0).lag_events > 0) desk.run();
}

TEST(TimerOperations, CountPendingTimersUpToALimit) {
  Desk desk;
  request(desk.store, "1", 10);
  request_many(desk, most_counted_timers - 1);
  EXPECT_EQ(desk.timers.processes().at(0).pending, most_counted_timers);
  EXPECT_FALSE(desk.timers.processes().at(0).is_pending_lower_bound);

  request(desk.store, "2", 10);
  desk.run();

  EXPECT_EQ(desk.timers.processes().at(0).pending, most_counted_timers);
  EXPECT_TRUE(desk.timers.processes().at(0).is_pending_lower_bound);
}

TEST(TimerOperations, SayUntilWhenSoManyTimersAreDue) {
  Desk desk;
  for (int i = 0; i < 6; ++i) request(desk.store, std::to_string(i), 10 + i);
  desk.run();
  const auto listed = desk.timers.list();
  const Timestamp first = listed.front().due_at;

  EXPECT_EQ(desk.timers.due_after({}, 3), first + 3min);
  EXPECT_EQ(desk.timers.due_after({.due_since = first + 2min}, 3), first + 5min);
  EXPECT_EQ(desk.timers.due_after({.after = listed[1]}, 4), first + 5min);
  EXPECT_EQ(desk.timers.due_after({}, 6), std::nullopt);
}

TEST(TimerOperations, SayHowFarBehindAProcessIs) {
  Desk desk;
  request(desk.store, "1", 10);
  desk.clock.advance(7s);
  request(desk.store, "2", 10);

  const ProcessStatus before = desk.timers.processes().at(0);
  desk.run();
  const ProcessStatus after = desk.timers.processes().at(0);
  EXPECT_EQ(before.lag_events, 2);
  EXPECT_EQ(before.lag, 7s);
  EXPECT_EQ(after.lag_events, 0);
  EXPECT_EQ(after.lag, 0s);
}

TEST(TimerOperations, CountTimersThatAreTriedAgainAsDue) {
  Desk desk{[](Process&, const std::string&) { throw std::runtime_error{"no"}; }, 1'000};
  request(desk.store, "1", 10);
  request(desk.store, "2", 11);
  request(desk.store, "3", 60);
  desk.run();
  for (int i = 0; i < 13; ++i) desk.run_after(1min);

  const ProcessStatus process = desk.timers.processes().at(0);
  EXPECT_EQ(process.pending, 3);
  EXPECT_EQ(process.due, 2);
  EXPECT_EQ(process.overdue, 2);
  EXPECT_EQ(process.oldest_due, 3min);
  EXPECT_GT(process.next_due_at, desk.clock.now());
  EXPECT_THAT(desk.keys({.overdue = true}), ElementsAre("booking-1", "booking-2"));
}

TEST(TimerOperations, HoldAndResumeAllTimers) {
  Desk desk;
  request(desk.store, "1");
  desk.run();
  desk.timers.hold("moving the database");

  EXPECT_EQ(desk.run_after(1h).timers_fired, 0);
  const auto holds = desk.timers.resume();

  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds[0].reason, HoldReason::by_operator);
  EXPECT_EQ(holds[0].detail, "moving the database");
  EXPECT_EQ(desk.run().timers_fired, 1);
  EXPECT_THAT(desk.timers.resume(), IsEmpty());
  EXPECT_THAT(desk.done(), ElementsAre("ann: resume operator", "ann: hold moving the database"));
}

TEST(TimerOperations, ConfirmAJumpOfTheClock) {
  Desk desk;
  request(desk.store, "1", 30);
  desk.run();
  desk.clock.jump_to(desk.clock.now() + 2h);
  EXPECT_EQ(desk.run().timers_fired, 0);

  const auto holds = desk.timers.resume();

  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds[0].detail, "the clock jumped forward by 7200 s");
  EXPECT_EQ(desk.run().timers_fired, 1);
}

TEST(TimerOperations, ResumeTheTimersOfARestoredBackup) {
  const TempDir dir;
  testing::ManualClock clock;
  {
    auto store = sqlite::open(dir.file("shop.db"), {.clock = &clock});
    Projections projections{store};
    projections.add_process(PaymentDeadline{});
    request(store, "1");
    Runner{projections}.run_once();
    sqlite::backup(store, dir.file("backup.db"));
  }
  auto store = sqlite::open(dir.file("backup.db"), {.clock = &clock});
  clock.advance(1h);
  Projections projections{store};
  projections.add_process(PaymentDeadline{});
  TimerOperations timers{store};
  EXPECT_EQ(timers.list({.due = true}).size(), 1U);

  const auto holds = timers.resume();

  ASSERT_EQ(holds.size(), 1U);
  EXPECT_THAT(holds[0].detail,
              HasSubstr("this database is a backup that was made at 2026-01-01T00:00:00"));
  EXPECT_EQ(Runner{projections}.run_once().timers_fired, 1);
}

TEST(TimerOperations, SayThatADatabaseHasNoProcesses) {
  auto store = test::open_empty();
  TimerOperations timers{store};

  EXPECT_THAT(timers.processes(), IsEmpty());
  EXPECT_THAT(timers.list(), IsEmpty());
  EXPECT_THAT(timers.holds(), IsEmpty());
  EXPECT_THAT(timers.actions(), IsEmpty());
  EXPECT_THAT(timers.resume(), IsEmpty());
  EXPECT_THROW(timers.cancel(Desk::timer("1")), NotFound);
}

}  // namespace
}  // namespace stela::timer_operations_test
