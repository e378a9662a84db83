#include "worker/health.hpp"

#include "cli/text.hpp"
#include "worker/metric_writer.hpp"

#include <algorithm>
#include <utility>

namespace stela::tool {
namespace {

double in_seconds(std::chrono::microseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

void write_outbox(MetricWriter& metrics, const OutboxStatus& status) {
  metrics.begin("stela_outbox_lag_seconds", "gauge", "Age of the oldest message that waits.")
      .value(status.lag ? in_seconds(*status.lag) : 0.0);
  metrics
      .begin("stela_outbox_messages", "gauge",
             "Messages that aren't published, by state; pending has those in flight and retrying.")
      .value(status.pending, {{"state", "pending"}})
      .value(status.in_flight, {{"state", "in_flight"}})
      .value(status.retrying, {{"state", "retrying"}})
      .value(status.redeliveries, {{"state", "redelivery"}})
      .value(status.parked, {{"state", "parked"}})
      .value(status.discarded, {{"state", "discarded"}});
  metrics.begin("stela_outbox_published_total", "counter", "Messages published, by all workers.")
      .value(status.published);
  metrics.begin("stela_outbox_partitions_stopped", "gauge", "Partitions that wait for an operator.")
      .value(std::int64_t{status.stopped});
  metrics.begin("stela_outbox_partition_pending", "gauge", "Messages that wait, by partition.");
  for (const PartitionStatus& partition : status.partitions) {
    metrics.value(partition.pending + partition.redeliveries,
                  {{"partition", partition.id.label()}});
  }
  metrics.begin("stela_outbox_partition_lag_seconds", "gauge",
                "Age of the oldest message that waits, by partition.");
  for (const PartitionStatus& partition : status.partitions) {
    const auto lag = partition.waiting_since
                         ? std::max(status.at - *partition.waiting_since, Timestamp::duration{0})
                         : Timestamp::duration{0};
    metrics.value(in_seconds(lag), {{"partition", partition.id.label()}});
  }
}

void write_worker(MetricWriter& metrics, const Condition& condition) {
  const Snapshot& done = condition.done;
  metrics.begin("stela_worker_owned_partitions", "gauge", "Partitions that this process has.")
      .value(done.owned);
  metrics.begin("stela_worker_wanted_partitions", "gauge", "Its share of the partitions.")
      .value(done.wanted);
  metrics.begin("stela_worker_active_workers", "gauge", "Workers that are alive, everywhere.")
      .value(done.active_workers);
  metrics.begin("stela_worker_heartbeat_age_seconds", "gauge", "Since the last heartbeat.")
      .value(in_seconds(done.heartbeat_age));
  metrics.begin("stela_worker_broker_up", "gauge", "1 while the broker is connected.")
      .value(std::int64_t{done.broker == "connected"});
  metrics.begin("stela_worker_ready", "gauge", "1 while /readyz says yes.")
      .value(std::int64_t{why_not_ready(condition).empty()});
  metrics
      .begin("stela_worker_publish_duration_seconds", "histogram",
             "From sending a message to the broker's acknowledgement.")
      .histogram(done.publish_latency);
  metrics
      .begin("stela_outbox_commit_to_publish_seconds", "histogram",
             "From the commit of an event to its publication; the ends of each batch.")
      .histogram(done.end_to_end);
}

}  // namespace

std::vector<std::string> why_not_ready(const Condition& condition) {
  std::vector<std::string> reasons;
  if (!condition.store_problem.empty()) {
    reasons.push_back("database: " + in_one_line(condition.store_problem));
  }
  if (condition.is_draining) reasons.push_back("draining");
  if (condition.done.broker != "connected") {
    reasons.push_back("broker: " + (condition.done.broker.empty()
                                        ? std::string{"connecting"}
                                        : in_one_line(condition.done.broker)));
  }
  for (const PartitionStatus& partition : condition.status.partitions) {
    if (partition.stopped.empty()) continue;
    reasons.push_back("partition " + partition.id.label() +
                      " is stopped: " + in_one_line(partition.stopped));
  }
  if (condition.status.lag && *condition.status.lag > condition.max_lag) {
    reasons.push_back("lag: " + in_words(*condition.status.lag) + ", more than " +
                      in_words(condition.max_lag));
  }
  return reasons;
}

std::string metrics_text(const Condition& condition) {
  MetricWriter metrics;
  write_outbox(metrics, condition.status);
  write_worker(metrics, condition);
  return std::move(metrics).text();
}

std::string metrics_text(std::span<const projections::ProjectorStatus> projectors) {
  using projections::ProjectorStatus;
  MetricWriter metrics;
  const auto write = [&](std::string_view name, std::string_view help, auto value_of) {
    metrics.begin(name, "gauge", help);
    for (const ProjectorStatus& one : projectors) {
      if (one.state == "living") metrics.value(value_of(one), {{"projector", one.name}});
    }
  };
  if (projectors.empty()) return {};
  write("stela_projector_lag_seconds", "How long the first event that it hasn't seen has waited.",
        [](const ProjectorStatus& one) { return in_seconds(one.lag); });
  write("stela_projector_lag_events", "Events that it hasn't seen.",
        [](const ProjectorStatus& one) { return one.lag_events; });
  write("stela_projector_halted", "1 while an event that it can't take holds it up.",
        [](const ProjectorStatus& one) { return std::int64_t{one.halted}; });
  write("stela_projector_parked_events", "Events that it put aside.",
        [](const ProjectorStatus& one) { return one.parked; });
  return std::move(metrics).text();
}

}  // namespace stela::tool
