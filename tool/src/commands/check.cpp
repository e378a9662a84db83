// outbox check, for monitoring systems.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/measures.hpp"
#include "commands/outbox_text.hpp"
#include "commands/server_measures.hpp"
#include "store_session.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

// The default limits.
constexpr std::chrono::seconds warning_lag{60};
constexpr std::chrono::seconds critical_lag{300};
constexpr std::chrono::seconds critical_silence{300};
constexpr double warning_parked_messages = 0;
/// Above this, there may be too many pending messages to count.
constexpr std::int64_t largest_pending_limit = most_counted_pending - 1;

std::vector<Measure> outbox_measures(const OutboxStatus& status, const Arguments& arguments) {
  const Limits limits{arguments};
  const double lag = status.lag ? static_cast<double>(status.lag->count()) / 1e6 : 0;
  const std::int64_t waiting = waiting_in(status);
  const LivingWorkers living = living_workers(status);
  // Without work, no worker is needed.
  const std::optional<double> wanted = limits.count("--min-workers", 1);
  return {{.name = "lag",
           .value = lag,
           .warning = limits.seconds("--warn-lag", warning_lag),
           .critical = limits.seconds("--max-lag", critical_lag),
           .unit = "s",
           .is_absent = !status.lag,
           .codes = {Code::outbox_late}},
          {.name = "unanswered",
           .value = static_cast<double>(longest_flight(status).count()) / 1e6,
           .warning = limits.seconds("--warn-unanswered", quiet_flight),
           .critical = limits.seconds("--max-unanswered", critical_silence),
           .unit = "s",
           .codes = {Code::partition_unanswered}},
          {.name = "parked",
           .value = static_cast<double>(status.parked),
           .warning = limits.count("--warn-parked", warning_parked_messages),
           .critical = limits.count("--max-parked", {}),
           .codes = {Code::outbox_parked}},
          {.name = "pending",
           .value = static_cast<double>(waiting),
           .warning = limits.count("--warn-pending", {}, largest_pending_limit),
           .critical = limits.count("--max-pending", {}, largest_pending_limit),
           .is_lower_bound = status.is_pending_lower_bound},
          {.name = "cut_off",
           .value = static_cast<double>(living.cut_off),
           .warning = 0.0,
           .codes = {Code::worker_cut_off}},
          {.name = "misconfigured",
           .value = static_cast<double>(living.misconfigured),
           .warning = 0.0,
           .codes = {Code::worker_misconfigured}},
          {.name = "stopped",
           .value = static_cast<double>(status.stopped),
           .critical = 0.0,
           .codes = {Code::partition_poison, Code::partition_foreign_writer,
                     Code::partition_broker_lost, Code::partition_store_went_back,
                     Code::partition_unreadable, Code::partition_damaged, Code::partition_missing,
                     Code::partition_unrecognized}},
          {.name = "workers",
           .value = static_cast<double>(living.all - living.cut_off),
           .critical = waiting > 0 ? wanted : std::nullopt,
           .is_least = true,
           .codes = {Code::outbox_unattended, Code::outbox_cut_off}}};
}

void require_order(const Measure& measure, const Arguments& given) {
  const std::string warn = "--warn-" + std::string{measure.name};
  const std::string most = "--max-" + std::string{measure.name};
  // A given limit may well exceed the default of the other one.
  if (!given.has(warn) || !given.has(most) || *measure.warning <= *measure.critical) return;
  throw Misuse{warn + " is above " + most + ": the warning would come after the alarm"};
}

Checked look_at_outbox(Invocation& call) {
  // A mistake in the limits is reported even without a database.
  for (const Measure& measure : outbox_measures({}, call.arguments)) {
    require_order(measure, call.arguments);
  }
  StoreSession session{call, {.only_reads = true}};
  auto of_database = session.place().is_on_server() ? measure_server(session)
                                                    : std::vector{measure_writing(session)};
  // If commits don't become durable, reading the status would only wait.
  if (session.place().is_on_server() && of_database.front().state() != ok) {
    return {.measures = std::move(of_database), .summary = {}};
  }
  const OutboxStatus status = session.operations().status();
  auto measures = outbox_measures(status, call.arguments);
  const Tolerance tolerance{.lag = limit_of(measures, "lag"),
                            .unanswered = limit_of(measures, "unanswered"),
                            .parked_messages = limit_of(measures, "parked")};
  explain(measures,
          diagnose({.at = status.at, .call = call.app.name + ' ', .outbox = status}, tolerance));
  measures.insert(measures.end(), of_database.begin(), of_database.end());
  return {.measures = std::move(measures),
          .summary = waiting_in_words(status) + " waiting, lag " + lag_in_words(status) + ", " +
                     in_digits(status.parked) + " parked"};
}

int check_outbox(Invocation& call) {
  return run_check(call, [&] { return look_at_outbox(call); });
}

}  // namespace

Command check_command() {
  return {
      .path = "outbox check",
      .summary = "Check the outbox, for monitoring systems",
      .about =
          "Exit codes follow Nagios: 0 OK, 1 warning, 2 critical, 3 unknown or wrong usage. "
          "Critical: a stopped partition, a database that can't be written to (on PostgreSQL, "
          "commits that wait for a missing standby), and pending messages while no live worker "
          "reaches its broker. Warning: a "
          "worker cut off from its broker, a broker that isn't set up for everything to be "
          "published, and on PostgreSQL a standby that lags for a minute, or a transaction that is "
          "open for ten. Above a --warn limit is a warning, above a --max limit is critical.",
      .options =
          {db_option,
           {"--warn-lag", "TIME", "warning if the oldest message is older (default 60s)"},
           {"--max-lag", "TIME", "critical if the oldest message is older (default 5m)"},
           {"--warn-unanswered", "TIME",
            "warning if the broker has answered nothing of what is in flight for longer (default "
            "10s)"},
           {"--max-unanswered", "TIME", "critical if it hasn't for longer (default 5m)"},
           {"--warn-parked", "N", "warning above this many parked messages (default 0)"},
           {"--max-parked", "N", "critical above this many parked messages (default: no limit)"},
           {"--warn-pending", "N",
            "warning above this many pending messages, 9999 at most (default: no limit)"},
           {"--max-pending", "N",
            "critical above this many pending messages, 9999 at most (default: no limit)"},
           {"--min-workers", "N",
            "critical below this many live workers while messages are pending (default 1; 0 if "
            "cron runs them)"},
           format_option},
      .examples = {{"every minute", "outbox check --max-lag 10s --max-parked 0 --format nagios"}},
      .checks = "outbox",
      .run = check_outbox};
}

}  // namespace stela::tool
