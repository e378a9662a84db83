#include "worker/health.hpp"

#include "cli/text.hpp"
#include "description/metric_writer.hpp"
#include "description/outbox.hpp"
#include "description/projections.hpp"
#include "description/timers.hpp"
#include "description/worker.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace stela::tool {
namespace {

using ReasonList = std::vector<std::string>;

/// A misconfigured broker needs an operator, so it is always a reason.
void add_broker(const std::string& name, const BrokerStatus& broker, bool is_needed,
                ReasonList& reasons) {
  const bool is_reason =
      is_needed ? !broker.is_connected() : broker.state == BrokerState::misconfigured;
  if (is_reason) reasons.push_back(name + ": " + in_one_line(to_string(broker)));
}

void add_relays(const ReadinessFacts& facts, ReasonList& reasons) {
  for (const auto& [name, relay] : facts.relays) {
    const std::string whose = name.empty() ? "" : "relay " + in_one_line(name) + ": ";
    if (!relay.store_refusal.empty()) {
      reasons.push_back(whose + "database: " + in_one_line(relay.store_refusal));
    }
    if (relay.heartbeat_age > facts.heartbeat_ttl) {
      reasons.push_back(whose + "heartbeat: none for " + in_words(relay.heartbeat_age) +
                        ", more than " + in_words(facts.heartbeat_ttl) +
                        ": is the database locked, or its disk full?");
    }
    add_broker(whose + "broker", relay.broker, facts.needs_broker, reasons);
  }
}

/// True for a standstill, and for a lag above the limit. Findings about drivers and the broker
/// don't count, because this process only knows its own.
bool is_reason(const Finding& finding, const ReadinessFacts& facts, Timestamp now) {
  if (finding.severity != Severity::critical) return false;
  switch (finding.code) {
    case Code::outbox_unattended:
    case Code::outbox_cut_off:
      return false;
    case Code::projector_unattended:
      return facts.max_lag && now - *finding.since > *facts.max_lag;
    default:
      return true;
  }
}

void add_findings(const ReadinessFacts& facts, ReasonList& reasons) {
  const Facts asked{.at = facts.at, .outbox = facts.outbox, .projectors = facts.projectors};
  Limit lag;
  if (facts.max_lag) lag.critical = in_seconds(*facts.max_lag);
  const Tolerance tolerance{.lag = lag, .unanswered = {}, .projection_lag = lag};
  for (const Finding& finding : diagnose(asked, tolerance)) {
    if (is_reason(finding, facts, asked.at)) reasons.push_back(finding.sentence);
  }
}

}  // namespace

void write_outbox(MetricWriter& metrics, const OutboxStatus& status) {
  write_metrics(metrics, description::outbox_status, status);
  write_metrics_of_each(metrics, description::partition, partitions_of(status));
}

std::vector<std::string> reasons_not_ready(const ReadinessFacts& facts) {
  std::vector<std::string> reasons;
  if (!facts.store_problem.empty()) {
    reasons.push_back("database: " + in_one_line(facts.store_problem));
  }
  for (const std::string& failure : facts.failures) reasons.push_back(in_one_line(failure));
  if (facts.is_draining) reasons.emplace_back("draining");
  add_relays(facts, reasons);
  for (const auto& [name, broker] : facts.consumers) {
    add_broker("broker of consumer " + in_one_line(name), broker, facts.needs_broker, reasons);
  }
  add_findings(facts, reasons);
  for (const std::string& name : facts.missing_projectors) {
    reasons.push_back("projector '" + in_one_line(name) + "' isn't in the database");
  }
  return reasons;
}

std::vector<std::string> why_not_ready(const Condition& condition) {
  const RelayFacts relay{.heartbeat_age = condition.done.heartbeat_age,
                         .broker = condition.done.broker.value_or(BrokerStatus{})};
  return reasons_not_ready({.at = condition.status.at,
                            .store_problem = condition.store_problem,
                            .is_draining = condition.is_draining,
                            .relays = {{"", relay}},
                            .heartbeat_ttl = condition.heartbeat_ttl,
                            .needs_broker = true,
                            .outbox = condition.status,
                            .max_lag = condition.max_lag});
}

std::string findings_text(const Facts& facts) {
  std::map<Code, std::int64_t> found;
  for (const Finding& finding : diagnose(facts)) ++found[finding.code];
  MetricWriter metrics;
  metrics.begin("stela_findings", "gauge", "What is wrong, by its code.");
  for (const CodeFacts& code : all_codes()) {
    if (code.code >= Code::message_parked) break;
    metrics.value(
        static_cast<double>(found[code.code]),
        label_text("code", code.word) + "," + label_text("severity", word_of(code.severity)));
  }
  return std::move(metrics).text();
}

std::string metrics_text(const Condition& condition) {
  MetricWriter metrics;
  write_metrics(metrics, description::outbox_status, condition.status);
  write_metrics_of_each(metrics, description::partition, partitions_of(condition.status));
  write_metrics(metrics, description::condition, condition);
  metrics
      .begin("stela_worker_publish_duration_seconds", "histogram",
             "From sending a message to the broker's acknowledgement.")
      .histogram(condition.done.publish_latency);
  metrics
      .begin("stela_outbox_commit_to_publish_seconds", "histogram",
             "From the commit of an event to its publication; the ends of each batch.")
      .histogram(condition.done.end_to_end);
  return std::move(metrics).text();
}

void write_projectors(MetricWriter& metrics, std::span<const ProjectorStatus> projectors) {
  if (projectors.empty()) return;
  std::vector<ProjectorStatus> living;
  std::copy_if(projectors.begin(), projectors.end(), std::back_inserter(living),
               [](const auto& one) { return one.state == BuildState::living; });
  write_metrics_of_each(metrics, description::projector, living);
}

void write_processes(MetricWriter& metrics, std::span<const ProcessStatus> processes) {
  if (!processes.empty()) write_metrics_of_each(metrics, description::process, processes);
}

std::string metrics_text(std::span<const ProjectorStatus> projectors,
                         std::span<const ProcessStatus> processes) {
  MetricWriter metrics;
  write_projectors(metrics, projectors);
  write_processes(metrics, processes);
  return std::move(metrics).text();
}

}  // namespace stela::tool
