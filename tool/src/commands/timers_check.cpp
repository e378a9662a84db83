#include "commands/timers_check.hpp"

#include "cli/text.hpp"
#include "commands/measures.hpp"
#include "commands/server_measures.hpp"
#include "store_session.hpp"

#include <stela/projections/timers.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

// The default limits.
constexpr std::chrono::seconds warning_late{60};
constexpr std::chrono::seconds critical_late{300};
constexpr double warning_parked_timers = 0;

/// Totals of all processes.
struct TimerSums {
  double late_seconds = 0;
  double due = 0;
  double parked = 0;
  double unknown = 0;
  double holds = 0;
};

TimerSums timer_sums(const Facts& facts) {
  TimerSums sums;
  for (const ProcessStatus& one : facts.processes) {
    const double late = std::chrono::duration<double>(one.oldest_due).count();
    sums.late_seconds = std::max(sums.late_seconds, late);
    sums.due += static_cast<double>(one.due);
    sums.parked += static_cast<double>(one.parked);
    sums.unknown += static_cast<double>(one.unknown);
  }
  sums.holds = static_cast<double>(facts.holds.size());
  return sums;
}

std::vector<Measure> timer_measures(const TimerSums& sums, const Arguments& arguments) {
  const Limits limits{arguments};
  return {{.name = "late",
           .value = sums.late_seconds,
           .warning = limits.seconds("--warn-late", warning_late),
           .critical = limits.seconds("--max-late", critical_late),
           .unit = "s",
           .codes = {Code::process_overdue}},
          {.name = "due", .value = sums.due},
          {.name = "parked",
           .value = sums.parked,
           .warning = limits.count("--warn-parked", warning_parked_timers),
           .critical = limits.count("--max-parked", {}),
           .codes = {Code::process_parked}},
          {.name = "unknown", .value = sums.unknown},
          {.name = "held", .value = sums.holds, .warning = 0, .codes = {Code::timers_held}}};
}

Checked look_at_timers(Invocation& call) {
  // A mistake in the limits is reported even without a database.
  timer_measures({}, call.arguments);
  StoreSession session{call, {.only_reads = true}};
  TimerOperations timers{session.store()};
  const Facts facts{.at = system_clock().now(),
                    .call = call.app.name + ' ',
                    .processes = timers.processes(),
                    .holds = timers.holds()};
  auto measures = timer_measures(timer_sums(facts), call.arguments);
  explain(measures, diagnose(facts, {.overdue_timers = limit_of(measures, "late"),
                                     .parked_timers = limit_of(measures, "parked")}));
  measures.push_back(measure_writing(session));
  return {.measures = std::move(measures), .summary = "no timer is late, none is parked"};
}

int check_timers(Invocation& call) {
  return run_check(call, [&] { return look_at_timers(call); });
}

}  // namespace

Command timers_check_command() {
  return {
      .path = "timers check",
      .summary = "Check timers, for monitoring systems",
      .about =
          "Exit codes follow Nagios: 0 OK, 1 warning, 2 critical, 3 unknown or wrong usage. A "
          "database that can't be written to is critical. Above a --warn limit is a warning, above "
          "a --max limit is critical.",
      .options =
          {db_option,
           {"--warn-late", "TIME", "warning if a timer has been due for longer (default 60s)"},
           {"--max-late", "TIME", "critical if a timer has been due for longer (default 5m)"},
           {"--warn-parked", "N", "warning above this many parked timers (default 0)"},
           {"--max-parked", "N", "critical above this many parked timers (default: no limit)"},
           format_option},
      .examples = {{"every minute", "timers check --max-late 10m --format nagios"}},
      .checks = "timers",
      .run = check_timers};
}

}  // namespace stela::tool
