// Whether the worker lives, and whether it is fit for work.
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

/// What is known of the worker at one moment.
struct Condition {
  const Figures& done;
  const OutboxStatus& status;
  /// Why the database doesn't answer, or isn't one that this program understands; empty if it does.
  std::string store_problem = {};
  bool is_draining = false;
  std::chrono::milliseconds max_lag{60'000};
  /// A worker that can't renew its heartbeat for so long isn't counted by the others.
  std::chrono::milliseconds heartbeat_ttl{20'000};
};

/// What a relay of the process told last.
struct RelayFacts {
  std::chrono::microseconds heartbeat_age{0};
  /// What its database refused last, if no waiting ends it.
  std::string store_refusal = {};
  BrokerStatus broker = {};
};

/// What is known of a process and of the database that it works on.
struct ReadinessFacts {
  Timestamp at = {};
  /// Why the database doesn't answer; empty if it does.
  std::string store_problem = {};
  /// What has ended that the process needs.
  std::vector<std::string> failures = {};
  bool is_draining = false;
  /// By name; the only one may have none.
  std::map<std::string, RelayFacts> relays = {};
  std::chrono::milliseconds heartbeat_ttl{20'000};
  /// The brokers of consumers, by the consumer's name.
  std::map<std::string, BrokerStatus> consumers = {};
  bool needs_broker = false;
  std::optional<OutboxStatus> outbox = {};
  std::vector<ProjectorStatus> projectors = {};
  /// Names of projectors that the database doesn't have.
  std::vector<std::string> missing_projectors = {};
  /// Unset: however far anything is behind.
  std::optional<std::chrono::milliseconds> max_lag = {};
};

/// Why the process shouldn't be counted on, in words; empty if it should.
std::vector<std::string> reasons_not_ready(const ReadinessFacts& facts);
/// The same of a worker.
std::vector<std::string> why_not_ready(const Condition& condition);

// Metrics of docs/reference/metrics.md, in Prometheus' text form: what isn't reported to a sink.

/// Of an outbox.
void write_outbox(MetricWriter& metrics, const OutboxStatus& status);
/// Of projectors as the database has them; nothing if it has none.
void write_projectors(MetricWriter& metrics, std::span<const ProjectorStatus> projectors);
/// Of processes and their timers; nothing if it has none.
void write_processes(MetricWriter& metrics, std::span<const ProcessStatus> processes);
/// How many findings there are of each code.
std::string findings_text(const Facts& facts);
/// Of the outbox and its worker.
std::string metrics_text(const Condition& condition);
std::string metrics_text(std::span<const ProjectorStatus> projectors,
                         std::span<const ProcessStatus> processes = {});

}  // namespace stela::tool
