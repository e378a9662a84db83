#include "commands/inbox_check.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/measures.hpp"
#include "commands/server_measures.hpp"
#include "store_session.hpp"

#include <stela/nats/inbox.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

// What holds unless it is said otherwise.
constexpr std::chrono::seconds warning_held{60};
constexpr std::chrono::seconds critical_held{300};
constexpr double warning_dead = 0;

/// Of all consumers together.
struct InboxSums {
  double held_streams = 0;
  double held_seconds = 0;
  double dead_letters = 0;
  double gaps = 0;
};

InboxSums inbox_sums(nats::InboxOperations& inbox, const std::string& consumer, Timestamp now) {
  InboxSums sums;
  for (const nats::ConsumerStatus& one : inbox.status()) {
    if (!consumer.empty() && one.consumer != consumer) continue;
    sums.held_streams += static_cast<double>(one.held_streams);
    sums.dead_letters += static_cast<double>(one.dead_letters);
    sums.gaps += static_cast<double>(one.gaps);
    if (!one.held_since) continue;
    const auto since = std::chrono::duration<double>(now - *one.held_since).count();
    sums.held_seconds = std::max(sums.held_seconds, since);
  }
  return sums;
}

std::vector<Measure> inbox_measures(const InboxSums& sums, const Arguments& arguments) {
  const Limits limits{arguments};
  return {{.name = "held",
           .value = sums.held_seconds,
           .warning = limits.seconds("--warn-held", warning_held),
           .critical = limits.seconds("--max-held", critical_held),
           .unit = "s"},
          {.name = "held_streams",
           .value = sums.held_streams,
           .critical = limits.count("--max-streams", {})},
          {.name = "dead_letters",
           .value = sums.dead_letters,
           .warning = limits.count("--warn-dead", warning_dead),
           .critical = limits.count("--max-dead", {})},
          {.name = "gaps",
           .value = sums.gaps,
           .warning = limits.count("--warn-gaps", {}),
           .critical = limits.count("--max-gaps", {})}};
}

Checked look_at_inbox(Invocation& call) {
  // A mistake in the limits is told even if there is no database.
  inbox_measures({}, call.arguments);
  StoreSession session{call, {.only_reads = true}};
  nats::InboxOperations inbox{session.store()};
  const InboxSums sums =
      inbox_sums(inbox, consumer_of(call.arguments, inbox), system_clock().now());
  auto measures = inbox_measures(sums, call.arguments);
  measures.push_back(measure_writing(session));
  return {.measures = std::move(measures),
          .summary = "no stream is held for long, no dead letters"};
}

int check_inbox(Invocation& call) {
  return run_check(call, [&] { return look_at_inbox(call); });
}

}  // namespace

std::string consumer_of(const Arguments& arguments, nats::InboxOperations& inbox) {
  const auto wanted = arguments.text("--consumer");
  if (!wanted) return {};
  const auto known = inbox.status();
  std::vector<std::string_view> names;
  for (const nats::ConsumerStatus& one : known) {
    if (one.consumer == *wanted) return *wanted;
    names.push_back(one.consumer);
  }
  throw Exit{not_found,
             "there is no consumer '" + in_one_line(*wanted) + "'" + did_you_mean(*wanted, names)};
}

Command inbox_check_command() {
  return {
      .path = "inbox check",
      .summary = "Check consumers, for monitoring systems",
      .about =
          "Exit codes follow Nagios: 0 OK, 1 warning, 2 critical, 3 unknown or wrong usage. A "
          "database that can't be written to is critical. Above a --warn limit is a warning, above "
          "a --max limit is critical.",
      .options = {db_option,
                  {"--consumer", "NAME", "only this consumer"},
                  {"--warn-held", "TIME", "warning if a stream is held for longer (default 60s)"},
                  {"--max-held", "TIME", "critical if a stream is held for longer (default 5m)"},
                  {"--max-streams", "N",
                   "critical above this many held streams (default: no limit)"},
                  {"--warn-dead", "N", "warning above this many dead letters (default 0)"},
                  {"--max-dead", "N", "critical above this many dead letters (default: no limit)"},
                  {"--warn-gaps", "N", "warning above this many gaps (default: no limit)"},
                  {"--max-gaps", "N", "critical above this many gaps (default: no limit)"},
                  format_option},
      .examples = {{"every minute", "inbox check --max-held 10m --format nagios"}},
      .checks = "inbox",
      .run = check_inbox};
}

}  // namespace stela::tool
