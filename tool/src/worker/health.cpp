#include "worker/health.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/json_writer.hpp>
#include <stela/framework/version.hpp>

#include <array>
#include <initializer_list>
#include <utility>

namespace stela::tool {
namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

double in_seconds(std::chrono::microseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

/// Writes metrics one behind the other.
class MetricWriter {
 public:
  MetricWriter& begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
    return *this;
  }
  MetricWriter& value(double number, Labels labels = {}, std::string_view suffix = {}) {
    out.append(name_).append(suffix);
    if (labels.size() > 0) out += '{';
    bool first = true;
    for (const auto& [label, text] : labels) {
      if (!std::exchange(first, false)) out += ',';
      out.append(label).append("=\"").append(escaped(text)).append("\"");
    }
    if (labels.size() > 0) out += '}';
    out += ' ';
    json::append_double(out, number);
    out += '\n';
    return *this;
  }
  MetricWriter& value(std::int64_t number, Labels labels = {}) {
    return value(static_cast<double>(number), labels);
  }
  void histogram(std::string_view name, const Histogram& histogram, std::string_view help) {
    begin(name, "histogram", help);
    for (std::size_t i = 0; i < Histogram::bounds.size(); ++i) {
      std::string bound;
      json::append_double(bound, Histogram::bounds[i]);
      value(static_cast<double>(histogram.up_to(i)), {{"le", bound}}, "_bucket");
    }
    value(static_cast<double>(histogram.count()), {{"le", "+Inf"}}, "_bucket");
    value(histogram.sum(), {}, "_sum");
    value(static_cast<double>(histogram.count()), {}, "_count");
  }

  std::string out;

 private:
  static std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : in_one_line(text)) {
      if (c == '"' || c == '\\') safe += '\\';
      safe += c;
    }
    return safe;
  }

  std::string_view name_;
};

void write_outbox(MetricWriter& metrics, const OutboxStatus& status) {
  metrics.begin("stela_outbox_lag_seconds", "gauge", "Age of the oldest message that waits.")
      .value(status.lag ? in_seconds(*status.lag) : 0.0);
  metrics.begin("stela_outbox_messages", "gauge", "Messages that aren't published, by state.")
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
    const auto lag =
        partition.oldest_recorded_at
            ? std::max(status.at - *partition.oldest_recorded_at, Timestamp::duration{0})
            : Timestamp::duration{0};
    metrics.value(in_seconds(lag), {{"partition", partition.id.label()}});
  }
}

void write_counters(MetricWriter& metrics, const Snapshot& done) {
  struct Counter {
    std::string_view name;
    std::int64_t value;
    std::string_view help;
  };
  const Counter counters[] = {
      {"stela_worker_ticks_total", done.ticks_ever, "Ticks of this process."},
      {"stela_worker_claimed_total", done.ever.claimed, "Messages taken up."},
      {"stela_worker_published_total", done.ever.published, "Messages published."},
      {"stela_worker_retried_total", done.ever.retried, "Tries that failed and are repeated."},
      {"stela_worker_parked_total", done.ever.parked, "Messages parked."},
      {"stela_worker_skipped_total", done.ever.skipped, "Messages given up by on_poison = skip."},
      {"stela_worker_fenced_total", done.ever.fenced, "Changes refused for want of the lease."},
      {"stela_worker_read_backs_total", done.ever.read_backs,
       "Questions to the broker what stands there."},
  };
  for (const Counter& counter : counters) {
    metrics.begin(counter.name, "counter", counter.help).value(counter.value);
  }
}

void write_worker(MetricWriter& metrics, const Condition& condition) {
  const Snapshot& done = condition.done;
  write_counters(metrics, done);
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
  metrics.histogram("stela_worker_tick_duration_seconds", done.tick_durations,
                    "How long a tick worked.");
  metrics.histogram("stela_worker_publish_duration_seconds", done.publish_latency,
                    "From sending a message to the broker's acknowledgement.");
  metrics.histogram("stela_outbox_commit_to_publish_seconds", done.end_to_end,
                    "From the commit of an event to its publication; the ends of each batch.");
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
  metrics.begin("stela_build_info", "gauge", "1, with the version of Stela.")
      .value(std::int64_t{1}, {{"version", version()}});
  return std::move(metrics.out);
}

}  // namespace stela::tool
