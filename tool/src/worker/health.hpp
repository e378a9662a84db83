// Whether the worker is alive, and whether it is ready.
#pragma once

#include "description/metric_writer.hpp"
#include "diagnosis/diagnose.hpp"
#include "worker/statistics.hpp"

#include <stela/outbox/messages.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stela::tool {

/// The state of the worker at one moment.
struct Condition {
  const Figures& done;
  const OutboxStatus& status;
  /// Why the database doesn't answer, or isn't understood by this program. Empty if all is well.
  std::string store_problem = {};
  bool is_draining = false;
  std::chrono::milliseconds max_lag{60'000};
  /// The other workers ignore a worker that hasn't renewed its heartbeat for this long.
  std::chrono::milliseconds heartbeat_ttl{20'000};
};

/// A relay's last report.
struct RelayFacts {
  std::chrono::microseconds heartbeat_age{0};
  /// The last refusal of its database that waiting doesn't end.
  std::string store_refusal = {};
  BrokerStatus broker = {};
};

/// The state of a process and of its database.
struct ReadinessFacts {
  Timestamp at = {};
  /// Why the database doesn't answer. Empty if it does.
  std::string store_problem = {};
  /// Things that the process needs and that have ended.
  std::vector<std::string> failures = {};
  bool is_draining = false;
  /// By name. A single relay may have none.
  std::map<std::string, RelayFacts> relays = {};
  std::chrono::milliseconds heartbeat_ttl{20'000};
  /// The brokers of consumers, by the consumer's name.
  std::map<std::string, BrokerStatus> consumers = {};
  bool needs_broker = false;
  std::optional<OutboxStatus> outbox = {};
  std::vector<ProjectorStatus> projectors = {};
  /// Names of projectors that the database lacks.
  std::vector<std::string> missing_projectors = {};
  /// Unset: any lag is accepted.
  std::optional<std::chrono::milliseconds> max_lag = {};
};

/// Why the process isn't ready, in words. Empty if it is.
std::vector<std::string> reasons_not_ready(const ReadinessFacts& facts);
/// As above, for a worker.
std::vector<std::string> why_not_ready(const Condition& condition);

// Metrics of docs/reference/metrics.md that aren't reported to a sink, in Prometheus' text format.

/// The metrics of an outbox.
void write_outbox(MetricWriter& metrics, const OutboxStatus& status);
/// The metrics of the database's projectors; writes nothing if there are none.
void write_projectors(MetricWriter& metrics, std::span<const ProjectorStatus> projectors);
/// The metrics of processes and their timers; writes nothing if there are none.
void write_processes(MetricWriter& metrics, std::span<const ProcessStatus> processes);
/// The number of findings of each code.
std::string findings_text(const Facts& facts);
/// The metrics of the outbox and its worker.
std::string metrics_text(const Condition& condition);
std::string metrics_text(std::span<const ProjectorStatus> projectors,
                         std::span<const ProcessStatus> processes = {});

}  // namespace stela::tool
