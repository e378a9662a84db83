#include "worker/problems.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace stela::tool {
namespace {

using PartitionGroup = std::vector<const PartitionStatus*>;

/// So many are named; the others are counted.
constexpr std::size_t most_named = 8;

std::string labels_of(const PartitionGroup& partitions) {
  std::string text;
  for (std::size_t i = 0; i < std::min(partitions.size(), most_named); ++i) {
    text.append(text.empty() ? "" : ", ").append(partitions[i]->id.label());
  }
  if (partitions.size() <= most_named) return text;
  return text + " and " + std::to_string(partitions.size() - most_named) + " more";
}

std::string call_of(const View& view) {
  return view.program + ' ';
}

std::string doctor(const View& view) {
  return "'" + call_of(view) + "doctor' says what to do";
}

/// Partitions by what is wrong with them.
std::map<std::string, PartitionGroup> by_trouble(const View& view, Style style) {
  std::map<std::string, PartitionGroup> groups;
  for (const PartitionStatus& each : view.status.partitions) {
    if (style_of(each) == style) groups[trouble_of(each)].push_back(&each);
  }
  return groups;
}

void add_database(const View& view, std::vector<Problem>& problems) {
  if (view.store_problem.empty()) return;
  problems.push_back({Style::bad, "database: " + in_one_line(view.store_problem), doctor(view)});
}

void add_stopped(const View& view, std::vector<Problem>& problems) {
  for (const auto& [trouble, group] : by_trouble(view, Style::bad)) {
    const PartitionStatus& first = *group.front();
    std::string what = labels_of(group) + "  " + trouble;
    if (!first.stopped_detail.empty()) {
      what += (group.size() > 1 ? "; " + first.id.label() + ": " : ": ") +
              in_one_line(first.stopped_detail);
    }
    std::string remedy = way_out_of(first, call_of(view));
    if (group.size() > 1) remedy += "; each of the others likewise";
    problems.push_back({Style::bad, std::move(what), std::move(remedy)});
  }
}

void add_broker(const View& view, std::vector<Problem>& problems) {
  if (view.own) {
    const BrokerStatus broker = view.own->done.broker.value_or(BrokerStatus{});
    if (broker.is_connected() || broker.state == BrokerState::connecting) return;
    const bool is_misconfigured = broker.state == BrokerState::misconfigured;
    problems.push_back({Style::bad, "broker " + in_one_line(to_string(broker)),
                        is_misconfigured ? doctor(view) : way_to_the_broker});
    return;
  }
  if (waiting_in(view.status) == 0 || held_up_by(view.status) != nullptr) return;
  const LivingWorkers living = living_workers(view.status);
  if (living.all == 0) {
    problems.push_back({Style::bad, "messages are pending and there is no live worker",
                        "'" + call_of(view) + "outbox work'"});
  } else if (living.cut_off + living.misconfigured > 0) {
    problems.push_back({Style::bad,
                        counted(living.cut_off + living.misconfigured, "worker") +
                            " without a broker to publish to: " + in_one_line(living.trouble),
                        living.cut_off > 0 ? way_to_the_broker : doctor(view)});
  }
}

/// "; next retry in 2.1 s"
std::string next_retry_of(const PartitionGroup& group, Timestamp now) {
  std::optional<Timestamp> next;
  for (const PartitionStatus* each : group) {
    if (each->next_attempt_at)
      next = std::min(next.value_or(Timestamp::max()), *each->next_attempt_at);
  }
  if (!next) return {};
  return "; next retry " + (*next > now ? "in " + in_words(*next - now) : std::string{"now"});
}

void add_backing_off(const View& view, std::vector<Problem>& problems) {
  for (const auto& [trouble, group] : by_trouble(view, Style::warning)) {
    problems.push_back({Style::warning,
                        labels_of(group) + "  " + trouble + next_retry_of(group, view.status.at),
                        "tried again by itself; " + doctor(view)});
  }
}

void add_parked(const View& view, std::vector<Problem>& problems) {
  if (view.status.parked == 0) return;
  PartitionGroup with;
  for (const PartitionStatus& each : view.status.partitions) {
    if (each.parked > 0) with.push_back(&each);
  }
  std::stable_sort(with.begin(), with.end(),
                   [](const auto* a, const auto* b) { return a->parked > b->parked; });
  std::string where;
  for (std::size_t i = 0; i < std::min(with.size(), most_named); ++i) {
    where.append(where.empty() ? ": " : ", ").append(with[i]->id.label());
    where.append(" ").append(in_digits(with[i]->parked));
  }
  if (with.size() > most_named) {
    where += " and " + std::to_string(with.size() - most_named) + " partitions more";
  }
  problems.push_back({Style::warning, counted(view.status.parked, "message") + " parked" + where,
                      way_to_unpark(call_of(view))});
}

void add_silent_workers(const View& view, std::vector<Problem>& problems) {
  for (const WorkerStatus& worker : view.status.workers) {
    if (worker.is_alive || worker.process != WorkerProcess::runs) continue;
    problems.push_back(
        {Style::warning,
         "worker " + in_one_line(worker.name) + " is silent" + ", and its process " +
             std::to_string(worker.pid) + " is running",
         "see whether it can write to the database; else end it and start it again"});
  }
}

void add_timers(const View& view, std::vector<Problem>& problems) {
  for (const ProcessStatus& each : view.processes) {
    const std::string process = "process " + each.name + ": ";
    if (each.overdue > 0) {
      problems.push_back({Style::warning,
                          process + counted(each.overdue, "timer") + " overdue, the first by " +
                              in_words(each.oldest_due),
                          doctor(view)});
    }
    if (each.parked > 0) {
      problems.push_back({Style::warning, process + counted(each.parked, "timer") + " parked",
                          "'" + call_of(view) + "timers list --parked'"});
    }
  }
}

}  // namespace

std::string trouble_of(const PartitionStatus& partition) {
  if (partition.stopped) return "stopped: " + word_of(partition.stopped);
  if (partition.attempts > 0) return "backing off: " + in_one_line(partition.last_error);
  const bool is_quiet = partition.flight_age && *partition.flight_age > quiet_flight;
  return is_quiet ? "no answer from the broker" : "";
}

Style style_of(const PartitionStatus& partition) {
  if (partition.stopped) return Style::bad;
  return trouble_of(partition).empty() ? Style::plain : Style::warning;
}

std::vector<Problem> problems_of(const View& view) {
  std::vector<Problem> problems;
  add_database(view, problems);
  add_broker(view, problems);
  add_stopped(view, problems);
  add_backing_off(view, problems);
  add_silent_workers(view, problems);
  add_parked(view, problems);
  add_timers(view, problems);
  return problems;
}

}  // namespace stela::tool
