// The test kit for processes: virtual time.
#include "projections/bookings.hpp"

#include <stela/projections_testing/process_scenario.hpp>
#include <stela/projections_testing/projector_scenario.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::testing::process_scenario_test {
namespace {

using namespace std::chrono_literals;
using test::Cancelled;
using test::Paid;
using test::PaymentDeadline;
using test::Requested;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const ScenarioFailed& e) {
    return e.what();
  }
  return "nothing failed";
}

TEST(ProcessScenario, FiresTimersWhenTimePasses) {
  ProcessScenario{PaymentDeadline{}}
      .given("booking-7", Requested{15})
      .then_nothing()
      .after(15min - 1us)
      .then_nothing()
      .after(1us)
      .then(on("booking-7", Cancelled{"not paid in time"}))
      .after(24h)
      .then_nothing();
}

TEST(ProcessScenario, FiresNoTimerThatAnEventCleared) {
  ProcessScenario{PaymentDeadline{}}
      .given("booking-7", Requested{15})
      .after(10min)
      .given("booking-7", Paid{})
      .after(24h)
      .then_nothing();
}

TEST(ProcessScenario, FiresEachTimerAtItsOwnTime) {
  std::vector<std::string> times;
  ManualClock* clock = nullptr;
  ProcessScenario scenario{PaymentDeadline{[&](stela::Process& process, const std::string&) {
    times.push_back(process.key() + ' ' + to_string(clock->now()).substr(11, 5));
  }}};
  clock = &scenario.clock();

  scenario.given("booking-1", Requested{20}).given("booking-2", Requested{10}).after(1h);

  EXPECT_THAT(times, ::testing::ElementsAre("booking-2 00:10", "booking-1 00:20"));
}

TEST(ProcessScenario, ShowsTheTimersThatAreSet) {
  ProcessScenario scenario{PaymentDeadline{}};
  scenario.given("booking-7", Requested{15})
      .then_timers({R"(booking-7: not_paid v1 {"booking":"7"} at 2026-01-01T00:15:00.000000Z)"})
      .given("booking-7", Paid{})
      .then_timers({});
  EXPECT_THAT(failure([&] { scenario.then_timers({"another"}); }),
              AllOf(HasSubstr("expected the timers\n  another"), HasSubstr("(none)")));
}

TEST(ProcessScenario, ReportsWhatAHandlerThrew) {
  ProcessScenario scenario{PaymentDeadline{
      [](Process&, const std::string&) { throw std::domain_error{"the till is closed"}; }}};
  scenario.given("booking-7", Requested{15}).after(15min).then_fails("the till is closed");

  EXPECT_THAT(failure([&] { scenario.then_nothing(); }), HasSubstr("the till is closed"));
  EXPECT_THAT(failure([&] { scenario.then_fails("is open"); }), HasSubstr("the till is closed"));
  EXPECT_THAT(failure([] { ProcessScenario{PaymentDeadline{}}.then_fails("no"); }),
              HasSubstr("none threw"));
}

/// Which day each booking was requested on.
class Days {
 public:
  static constexpr ProjectorType projector_type{"days", 1};
  using Events = EventSet<Requested>;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {days} (booking TEXT PRIMARY KEY, day TEXT NOT NULL) STRICT");
  }
  void project(ReadModel& model, const Recorded<Requested>& e) {
    model.execute("INSERT INTO {days} VALUES (?1, ?2)", e.stream().key(),
                  to_string(e.recorded_at()).substr(0, 10));
  }
};

TEST(ProjectorScenario, RecordsEventsAfterTimeHasPassed) {
  ProjectorScenario{Days{}}
      .given("booking-1", Requested{})
      .after(36h)
      .given("booking-2", Requested{})
      .then("SELECT * FROM days ORDER BY booking", {"1 | 2026-01-01", "2 | 2026-01-02"});
}

}  // namespace
}  // namespace stela::testing::process_scenario_test
