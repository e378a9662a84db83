#include "worker/health.hpp"

#include "cli/text.hpp"
#include "description/metric_writer.hpp"
#include "description/outbox.hpp"
#include "description/projections.hpp"
#include "description/timers.hpp"
#include "description/worker.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stela::tool {

void write_outbox(MetricWriter& metrics, const OutboxStatus& status) {
  write_metrics(metrics, description::outbox_status, status);
  write_metrics_of_each(metrics, description::partition, partitions_of(status));
}

std::vector<std::string> why_not_ready(const Condition& condition) {
  std::vector<std::string> reasons;
  if (!condition.store_problem.empty()) {
    reasons.push_back("database: " + in_one_line(condition.store_problem));
  }
  if (condition.is_draining) reasons.push_back("draining");
  if (condition.done.heartbeat_age > condition.heartbeat_ttl) {
    reasons.push_back("heartbeat: none for " + in_words(condition.done.heartbeat_age) +
                      ", more than " + in_words(condition.heartbeat_ttl) +
                      ": is the database locked, or its disk full?");
  }
  const BrokerStatus broker = condition.done.broker.value_or(BrokerStatus{});
  if (!broker.is_connected()) reasons.push_back("broker: " + in_one_line(to_string(broker)));
  for (const PartitionStatus& partition : condition.status.partitions) {
    if (!partition.stopped) continue;
    reasons.push_back("partition " + partition.id.label() +
                      " is stopped: " + word_of(partition.stopped));
  }
  if (condition.status.lag && *condition.status.lag > condition.max_lag) {
    reasons.push_back("lag: " + in_words(*condition.status.lag) + ", more than " +
                      in_words(condition.max_lag));
  }
  return reasons;
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
