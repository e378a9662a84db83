// Processes: what they set, and when it fires.
#include "projections/bookings.hpp"
#include "projections/models.hpp"
#include "support/engine.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <optional>

namespace stela::process_test {
namespace {

using namespace std::chrono_literals;
using test::history;
using test::message_of;
using test::pay;
using test::PaymentDeadline;
using test::request;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A store whose clock the test moves, with a runner of the process.
struct Hotel {
  explicit Hotel(test::DueHook on_due = {}, const ReactionOptions& options = {}) {
    projections.add_process(PaymentDeadline{std::move(on_due)}, options);
    runner.emplace(projections);
  }
  RunnerTick run() { return runner->run_once(); }
  RunnerTick run_after(std::chrono::microseconds time) {
    clock.advance(time);
    return run();
  }

  testing::ManualClock clock;
  Store store = test::open_empty({.clock = &clock});
  Projections projections{store};
  std::optional<Runner> runner;
};

TEST(Process, CancelsWhatIsNotPaidInTime) {
  Hotel hotel;
  request(hotel.store, "1");
  hotel.run_after(15min - 1us);
  EXPECT_THAT(history(hotel.store), ElementsAre("1 requested"));

  const RunnerTick tick = hotel.run_after(1us);

  EXPECT_THAT(history(hotel.store), ElementsAre("1 requested", "1 cancelled"));
  EXPECT_EQ(tick.timers_fired, 1);
  EXPECT_EQ(hotel.run_after(24h).timers_fired, 0);
}

TEST(Process, FiresNoTimerThatWasCleared) {
  Hotel hotel;
  request(hotel.store, "1");
  hotel.run();
  pay(hotel.store, "1");

  EXPECT_EQ(hotel.run_after(24h).timers_fired, 0);
  EXPECT_THAT(history(hotel.store), ElementsAre("1 requested", "1 paid"));
}

TEST(Process, LetsAPaymentInTimeWinAfterAnOutage) {
  Hotel hotel;
  request(hotel.store, "1");
  request(hotel.store, "2");
  hotel.run_after(14min);
  pay(hotel.store, "1");

  hotel.run_after(1h);

  EXPECT_THAT(history(hotel.store),
              ElementsAre("1 requested", "2 requested", "1 paid", "2 cancelled"));
}

TEST(Process, MovesATimerThatIsSetAgain) {
  Hotel hotel;
  request(hotel.store, "1", 15);
  hotel.run();
  UnitOfWork unit{hotel.store};
  unit.append(StreamId::parse("booking-1"), ExpectedVersion::any(), test::Requested{60});
  unit.commit();
  hotel.run();

  EXPECT_EQ(hotel.run_after(59min).timers_fired, 0);
  EXPECT_EQ(hotel.run_after(1min).timers_fired, 1);
}

TEST(Process, FiresInOrderOfDueTime) {
  std::vector<std::string> fired;
  Hotel hotel{[&](stela::Process& process, const std::string&) { fired.push_back(process.key()); }};
  for (const auto& [key, minutes] :
       {std::pair{"a", 30}, {"b", 10}, {"c", 20}, {"e", 20}, {"d", 20}}) {
    request(hotel.store, key, minutes);
  }
  hotel.run();

  hotel.run_after(1h);

  EXPECT_THAT(fired, ElementsAre("booking-b", "booking-c", "booking-d", "booking-e", "booking-a"));
}

TEST(Process, KeepsCorrelationActorAndCause) {
  Hotel hotel;
  {
    const ContextScope scope{{.correlation_id = "checkout", .actor = "web"}};
    request(hotel.store, "1");
  }
  hotel.run();
  hotel.run_after(15min);

  EventRange range = hotel.store.read_all();
  const auto events = range.next_page();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].correlation_id(), "checkout");
  EXPECT_EQ(events[1].causation_id, events[0].id);
  EXPECT_EQ(events[1].context().actor, "web");
}

TEST(Process, SetsATimerAgainWhileItIsDue) {
  int times = 0;
  Hotel hotel{[&](stela::Process& process, const std::string& kind) {
    if (kind == "not_paid") process.set(test::Remind{}, 1h);
    if (kind == "remind" && ++times < 3) process.set(test::Remind{}, 1h);
  }};
  request(hotel.store, "1");
  hotel.run();

  EXPECT_EQ(hotel.run_after(15min).timers_fired, 1);
  // The cancellation that it led to clears the reminder.
  EXPECT_EQ(hotel.run_after(24h).timers_fired, 0);
  EXPECT_EQ(times, 0);
}

TEST(Process, SetsATimerInThePastThatFiresAtOnce) {
  Hotel hotel;
  request(hotel.store, "1", -60);

  EXPECT_EQ(hotel.run().timers_fired, 1);
  EXPECT_THAT(history(hotel.store), ElementsAre("1 requested", "1 cancelled"));
}

TEST(Process, KeepsATimerThatIsAThousandYearsAhead) {
  Hotel hotel;
  request(hotel.store, "1", std::int64_t{60} * 24 * 365 * 1000);
  hotel.run();

  EXPECT_EQ(hotel.run_after(24h * 365).timers_fired, 0);
  // A runner that starts then has seen no jump of the clock.
  hotel.clock.jump_to(hotel.clock.now() + std::chrono::years{1000});
  EXPECT_EQ(Runner{hotel.projections}.run_once().timers_fired, 1);
}

TEST(Process, RefusesATimerAfterTheYear9999) {
  Hotel hotel{{}, {.handling = {.max_attempts = 1}}};
  request(hotel.store, "1", std::int64_t{60} * 24 * 365 * 9000);

  EXPECT_EQ(hotel.run().stopped, 1);
  EXPECT_THAT(ProjectionOperations{hotel.store}.status().at(0).error,
              HasSubstr("'not_paid' of 'booking-1' would be due after the year 9999"));
}

TEST(Process, FiresTenThousandTimersOfTheSameInstant) {
  std::vector<std::string> fired;
  Hotel hotel{[&](stela::Process& process, const std::string&) { fired.push_back(process.key()); }};
  UnitOfWork unit{hotel.store};
  for (int i = 0; i < 10'000; ++i) {
    unit.append(StreamId::parse("booking-" + std::to_string(100'000 + i)), ExpectedVersion::none(),
                test::Requested{15});
  }
  unit.commit();
  hotel.run();

  EXPECT_EQ(hotel.run_after(15min).timers_fired, 10'000);
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
  EXPECT_EQ(fired.size(), 10'000U);
}

TEST(Process, RetriesAFailingTimerAndThenParksIt) {
  int failures = 0;
  Hotel hotel{[&](stela::Process& process, const std::string&) {
                if (process.key() == "booking-1") {
                  ++failures;
                  throw std::runtime_error{"no"};
                }
              },
              {.handling = {.max_attempts = 3, .retry_backoff = 1s}}};
  request(hotel.store, "1");
  request(hotel.store, "2");
  hotel.run();

  EXPECT_EQ(hotel.run_after(15min).timers_failed, 1);
  EXPECT_EQ(hotel.run_after(999ms).timers_failed, 0);
  EXPECT_EQ(hotel.run_after(1ms).timers_failed, 1);
  const RunnerTick last = hotel.run_after(2s);
  EXPECT_EQ(last.timers_failed, 1);
  EXPECT_EQ(last.timers_parked, 1);
  EXPECT_EQ(hotel.run_after(24h).timers_failed, 0);
  EXPECT_EQ(failures, 3);
  EXPECT_THAT(history(hotel.store), ElementsAre("1 requested", "2 requested", "2 cancelled"));
}

}  // namespace
}  // namespace stela::process_test
