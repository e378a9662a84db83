#include "commands/inbox_check.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/measures.hpp"
#include "commands/server_measures.hpp"
#include "store_session.hpp"

#include <stela/nats/inbox.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace stela::tool {
namespace {

// The default limits.
constexpr double warning_parked = 0;
constexpr double critical_overdue = 0;
constexpr double warning_standing = 0;
/// A resize or a restart makes a consumer pause for a moment.
constexpr std::chrono::seconds longest_pause{60};

/// Totals of all consumers.
struct InboxSums {
  double parked = 0;
  double parked_streams = 0;
  double overdue = 0;
  double failing = 0;
  double gaps = 0;
  double standing = 0;
};

bool stands_still(const Finding& one, Timestamp now) {
  switch (one.code) {
    case Code::consumer_unknown_version:
    case Code::consumer_waiting:
    case Code::consumer_standing:
      return !one.since || now - *one.since >= longest_pause;
    case Code::consumer_unattended:
      // It isn't known of a reader that didn't end in order.
      return one.since && now - *one.since >= longest_pause;
    default:
      return false;
  }
}

InboxSums inbox_sums(const std::vector<nats::ConsumerStatus>& consumers, std::int64_t standing) {
  InboxSums sums{.standing = static_cast<double>(standing)};
  for (const nats::ConsumerStatus& one : consumers) {
    sums.parked += static_cast<double>(one.parked_messages);
    sums.parked_streams += static_cast<double>(one.parked_streams);
    sums.gaps += static_cast<double>(one.gaps);
    sums.overdue += static_cast<double>(
        std::count_if(one.readers.begin(), one.readers.end(),
                      [](const nats::ReaderStatus& reader) { return reader.is_overdue; }));
    sums.failing += static_cast<double>(
        std::count_if(one.readers.begin(), one.readers.end(), [](const nats::ReaderStatus& reader) {
          return reader.is_overdue || !reader.error.empty();
        }));
  }
  return sums;
}

std::vector<Measure> inbox_measures(const InboxSums& sums, const Arguments& arguments) {
  const Limits limits{arguments};
  return {{.name = "parked",
           .value = sums.parked,
           .warning = limits.count("--warn-parked", warning_parked),
           .critical = limits.count("--max-parked", {}),
           .codes = {Code::consumer_parked}},
          {.name = "parked_streams",
           .value = sums.parked_streams,
           .critical = limits.count("--max-streams", {})},
          {.name = "overdue",
           .value = sums.overdue,
           .critical = limits.count("--max-overdue", critical_overdue),
           .codes = {Code::consumer_overdue}},
          {.name = "standing",
           .value = sums.standing,
           .warning = limits.count("--warn-standing", warning_standing),
           .critical = limits.count("--max-standing", {}),
           .codes = {Code::consumer_unattended, Code::consumer_unknown_version,
                     Code::consumer_waiting, Code::consumer_standing}},
          {.name = "failing",
           .value = sums.failing,
           .warning = limits.count("--warn-failing", {}),
           .critical = limits.count("--max-failing", {}),
           .codes = {Code::consumer_failing, Code::consumer_unknown_version, Code::consumer_waiting,
                     Code::consumer_standing}},
          {.name = "gaps",
           .value = sums.gaps,
           .warning = limits.count("--warn-gaps", {}),
           .critical = limits.count("--max-gaps", {}),
           .codes = {Code::consumer_gaps}}};
}

Checked look_at_inbox(Invocation& call) {
  // A mistake in the limits is reported even without a database.
  inbox_measures({}, call.arguments);
  StoreSession session{call, {.only_reads = true}};
  nats::InboxOperations inbox{session.store()};
  const std::string consumer = consumer_of(call.arguments, inbox);
  Facts facts{.at = system_clock().now(), .call = call.app.name + ' ', .consumers = inbox.status()};
  std::erase_if(facts.consumers, [&](const nats::ConsumerStatus& one) {
    return !consumer.empty() && one.consumer != consumer;
  });
  const std::vector<Finding> findings = diagnose(facts);
  std::vector<Finding> standing;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(standing),
               [&](const Finding& one) { return stands_still(one, facts.at); });
  auto measures = inbox_measures(inbox_sums(facts.consumers, std::ssize(standing)), call.arguments);
  explain(measures, findings);
  // Findings of a short standstill may come first.
  explain(measures, standing);
  measures.push_back(measure_writing(session));
  return {.measures = std::move(measures), .summary = "no parked messages"};
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
      .options =
          {db_option,
           {"--consumer", "NAME", "only this consumer"},
           {"--warn-parked", "N", "warning above this many parked messages (default 0)"},
           {"--max-parked", "N", "critical above this many parked messages (default: no limit)"},
           {"--max-streams", "N", "critical above this many streams that wait (default: no limit)"},
           {"--max-overdue", "N",
            "critical above this many readers that are gone or hang (default 0)"},
           {"--warn-standing", "N",
            "warning above this many consumers that have stood still, or weren't read, for a "
            "minute (default 0)"},
           {"--max-standing", "N",
            "critical above this many consumers that have stood still, or weren't read, for a "
            "minute (default: no limit)"},
           {"--warn-failing", "N",
            "warning above this many consumers that fail or stand still (default: no limit)"},
           {"--max-failing", "N",
            "critical above this many consumers that fail or stand still (default: no limit)"},
           {"--warn-gaps", "N", "warning above this many gaps (default: no limit)"},
           {"--max-gaps", "N", "critical above this many gaps (default: no limit)"},
           format_option},
      .examples = {{"every minute", "inbox check --max-streams 10 --format nagios"}},
      .checks = "inbox",
      .run = check_inbox};
}

}  // namespace stela::tool
