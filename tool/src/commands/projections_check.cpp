#include "commands/projections_check.hpp"

#include "commands/measures.hpp"
#include "commands/server_measures.hpp"
#include "store_session.hpp"

#include <stela/projections/operations.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

// The default limits.
constexpr std::chrono::seconds warning_lag{60};
constexpr std::chrono::seconds critical_lag{300};
constexpr double warning_parked_events = 0;
constexpr double critical_unattended = 0;

/// Totals of all projectors and reactions.
struct ProjectionSums {
  double lag_seconds = 0;
  double stopped = 0;
  double parked = 0;
  /// They lag, and no runner drives them.
  double unattended = 0;
};

ProjectionSums sum_of(const std::vector<ProjectorStatus>& projectors, Timestamp now) {
  ProjectionSums sums;
  for (const ProjectorStatus& one : projectors) {
    if (one.state == BuildState::scratch || one.state == BuildState::retired) continue;
    sums.parked += static_cast<double>(one.parked);
    sums.stopped += one.stopped ? 1 : 0;
    // An inline projector only lags if it was left behind, and a rebuild lags until it is done.
    if (one.kind == ProjectionKind::inline_ || one.state != BuildState::living) continue;
    const double lag = std::chrono::duration<double>(one.lag).count();
    sums.lag_seconds = std::max(sums.lag_seconds, lag);
    sums.unattended += is_unattended(one, now) ? 1 : 0;
  }
  return sums;
}

std::vector<Measure> projection_measures(const ProjectionSums& sums, const Arguments& arguments) {
  const Limits limits{arguments};
  return {
      {.name = "lag",
       .value = sums.lag_seconds,
       .warning = limits.seconds("--warn-lag", warning_lag),
       .critical = limits.seconds("--max-lag", critical_lag),
       .unit = "s",
       .codes = {Code::projector_late}},
      {.name = "stopped", .value = sums.stopped, .critical = 0, .codes = {Code::projector_stopped}},
      {.name = "parked",
       .value = sums.parked,
       .warning = limits.count("--warn-parked", warning_parked_events),
       .critical = limits.count("--max-parked", {}),
       .codes = {Code::projector_parked}},
      {.name = "unattended",
       .value = sums.unattended,
       .critical = limits.count("--max-unattended", critical_unattended),
       .codes = {Code::projector_unattended}}};
}

Checked look_at_projections(Invocation& call) {
  // A mistake in the limits is reported even without a database.
  projection_measures({}, call.arguments);
  StoreSession session{call, {.only_reads = true}};
  const auto projectors = ProjectionOperations{session.store()}.status();
  const Timestamp now = system_clock().now();
  auto measures = projection_measures(sum_of(projectors, now), call.arguments);
  const Tolerance tolerance{.projection_lag = limit_of(measures, "lag"),
                            .parked_events = limit_of(measures, "parked")};
  explain(measures,
          diagnose({.at = now, .call = call.app.name + ' ', .projectors = projectors}, tolerance));
  measures.push_back(measure_writing(session));
  return {.measures = std::move(measures),
          .summary = "no projector is behind or stopped, no event is parked"};
}

int check_projections(Invocation& call) {
  return run_check(call, [&] { return look_at_projections(call); });
}

}  // namespace

Command projections_check_command() {
  return {.path = "projections check",
          .summary = "Check projectors and reactions, for monitoring systems",
          .about =
              "Exit codes follow Nagios: 0 OK, 1 warning, 2 critical, 3 unknown or wrong usage. "
              "Critical: a stopped projector, one that is behind and that no runner drives, and a "
              "database that can't be written to. Above a --warn limit is a warning, above a --max "
              "limit is critical.",
          .options = {db_option,
                      {"--warn-lag", "TIME",
                       "warning if the first unhandled event waits longer (default 60s)"},
                      {"--max-lag", "TIME", "critical if it waits longer (default 5m)"},
                      {"--warn-parked", "N", "warning above this many parked events (default 0)"},
                      {"--max-parked", "N",
                       "critical above this many parked events (default: no limit)"},
                      {"--max-unattended", "N",
                       "critical if more projectors than this are behind and without a runner "
                       "(default 0; more "
                       "if cron runs them)"},
                      format_option},
          .examples = {{"every minute", "projections check --max-lag 10s --format nagios"}},
          .checks = "projections",
          .run = check_projections};
}

}  // namespace stela::tool
