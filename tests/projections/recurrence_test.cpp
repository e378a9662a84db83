// Timers that fire again and again.
#include "projections/bookings.hpp"
#include "projections/models.hpp"
#include "support/engine.hpp"

#include <stela/framework/error.hpp>
#include <stela/projections/recurrence.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace stela::recurrence_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Timestamp at(std::string_view text) {
  return parse_timestamp(text).value();
}

/// The next times after `from`, up to the minute.
std::vector<std::string> next_times(const Recurrence& recurrence, std::string_view from,
                                    int count) {
  std::vector<std::string> times;
  Timestamp time = detail::first_due(recurrence, at(from));
  for (int i = 0; i < count; ++i) {
    times.push_back(to_string(time).substr(0, 16));
    time = detail::next_due(detail::to_text(recurrence), time, time);
  }
  return times;
}

TEST(Recurrence, OfAnIntervalCountsFromTheFirst) {
  EXPECT_THAT(next_times(Every{6h, at("2026-03-28T20:30:00Z")}, "2026-03-28T00:00:00Z", 3),
              ElementsAre("2026-03-28T20:30", "2026-03-29T02:30", "2026-03-29T08:30"));
}

TEST(Recurrence, OfATimeOfDayFollowsTheZone) {
  // Berlin is two hours ahead in summer and one in winter.
  EXPECT_THAT(next_times(DailyAt{9h + 30min, "Europe/Berlin"}, "2026-03-27T12:00:00Z", 3),
              ElementsAre("2026-03-28T08:30", "2026-03-29T07:30", "2026-03-30T07:30"));
}

TEST(Recurrence, TakesTheFirstValidTimeAfterOneThatSpringLeavesOut) {
  // On 29 March 2026 the clocks go from 2:00 to 3:00.
  EXPECT_THAT(next_times(DailyAt{2h + 30min, "Europe/Berlin"}, "2026-03-28T00:00:00Z", 3),
              ElementsAre("2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"));
}

TEST(Recurrence, TakesTheFirstOfTwoTimesThatAutumnRepeats) {
  // On 25 October 2026 the clocks go from 3:00 back to 2:00.
  EXPECT_THAT(
      next_times(DailyAt{2h + 30min, "Europe/Berlin"}, "2026-10-24T00:00:00Z", 4),
      ElementsAre("2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"));
}

TEST(Recurrence, FindsItsTimeAcrossTheDateLine) {
  EXPECT_THAT(next_times(DailyAt{0h, "Pacific/Kiritimati"}, "2026-06-01T09:59:00Z", 2),
              ElementsAre("2026-06-01T10:00", "2026-06-02T10:00"));
  EXPECT_THAT(next_times(DailyAt{23h + 59min, "Pacific/Pago_Pago"}, "2026-06-01T11:00:00Z", 2),
              ElementsAre("2026-06-02T10:59", "2026-06-03T10:59"));
}

TEST(Recurrence, CoalescesTimesThatWereMissed) {
  const Timestamp due = at("2026-01-01T00:00:00Z");
  EXPECT_EQ(detail::next_due("every 3600000000", due, due + 5h + 20min), due + 6h);
  EXPECT_EQ(detail::next_due("every 3600000000", due, due + 5h), due + 6h);
  EXPECT_EQ(to_string(detail::next_due("daily 0 UTC", due, due + 71h)).substr(0, 16),
            "2026-01-04T00:00");
}

TEST(Recurrence, IsRefusedIfItNeverComesOrIsNowhere) {
  const auto refusal = [](const Recurrence& recurrence) {
    return message_of<UsageError>([&] { detail::check_recurrence(recurrence); });
  };
  EXPECT_THAT(refusal(Every{999'999us, {}}), HasSubstr("at least a second"));
  EXPECT_THAT(refusal(Every{-1h, {}}), HasSubstr("at least a second"));
  EXPECT_THAT(refusal(Every{std::chrono::microseconds::max(), {}}), HasSubstr("at most a century"));
  EXPECT_THAT(refusal(DailyAt{24h, "UTC"}), HasSubstr("before 24:00"));
  EXPECT_THAT(refusal(DailyAt{-1min, "UTC"}), HasSubstr("from 0:00"));
  EXPECT_THAT(refusal(DailyAt{1h, "Europe/Atlantis"}),
              HasSubstr("this host has no time zone 'Europe/Atlantis'"));
}

TEST(Recurrence, IsShownWithItsFractionOfASecond) {
  EXPECT_EQ(detail::in_words(detail::to_text(Every{8h, {}})), "every 08:00:00");
  EXPECT_EQ(detail::in_words(detail::to_text(Every{1500ms, {}})), "every 00:00:01.500000");
  EXPECT_EQ(detail::in_words(detail::to_text(DailyAt{9h + 30min, "UTC"})),
            "daily at 09:30:00 in UTC");
}

TEST(Recurrence, IsReportedAsCorruptIfItIsDamaged) {
  for (const char* const text :
       {"", "every", "every x", "every -5", "every 5 x", "daily 5", "hourly"}) {
    EXPECT_THAT(message_of<CorruptEvent>([&] { (void)detail::next_due(text, {}, {}); }),
                HasSubstr("isn't a recurrence"))
        << text;
  }
}

/// Counts how often it is called; every booking that is paid ends it.
class Daily {
 public:
  static constexpr ProcessType process_type{"daily"};
  using Events = EventSet<test::Requested, test::Paid>;
  using Timers = TimerSet<test::Remind>;
  Daily(const Recurrence& recurrence, std::vector<std::string>& fired)
      : recurrence_{recurrence}, fired_{&fired} {}

  void react(stela::Process& process, const Recorded<test::Requested>&) {
    std::visit([&](const auto& one) { process.set(test::Remind{}, one); }, recurrence_);
  }
  void react(stela::Process& process, const Recorded<test::Paid>&) {
    process.clear<test::Remind>();
  }
  void due(stela::Process& process, const test::Remind&) {
    fired_->push_back(to_string(process.time()).substr(0, 16));
  }

 private:
  Recurrence recurrence_;
  std::vector<std::string>* fired_;
};

TEST(RecurringTimer, FiresEachTimeUntilItIsCleared) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  std::vector<std::string> fired;
  Projections projections{store};
  projections.add_process(Daily{DailyAt{12h, "UTC"}, fired});
  Runner runner{projections};
  test::request(store, "1");
  runner.run_once();
  for (int i = 0; i < 3; ++i) {
    clock.advance(24h);
    runner.run_once();
  }
  test::pay(store, "1");
  clock.advance(48h);
  runner.run_once();

  EXPECT_THAT(fired, ElementsAre("2026-01-01T12:00", "2026-01-02T12:00", "2026-01-03T12:00"));
}

TEST(RecurringTimer, FiresOnceForAllTimesThatWereMissed) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  std::vector<std::string> fired;
  Projections projections{store};
  projections.add_process(Daily{Every{1h, testing::ManualClock::start + 1h}, fired});
  Runner runner{projections};
  test::request(store, "1");
  runner.run_once();
  clock.advance(5h + 30min);
  runner.run_once();
  clock.advance(30min);
  runner.run_once();

  EXPECT_THAT(fired, ElementsAre("2026-01-01T01:00", "2026-01-01T06:00"));
}

}  // namespace
}  // namespace stela::recurrence_test
