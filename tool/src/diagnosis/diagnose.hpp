// The only judge of a store: the known facts, and the findings that follow from them.
#pragma once

#include "diagnosis/finding.hpp"

#include <stela/eventstore/detail/journal.hpp>
#include <stela/eventstore/detail/postgres_status.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/outbox/messages.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::tool {

/// Values above the first limit are a warning, above the second critical. Unset: never.
struct Limit {
  std::optional<double> warning = {};
  std::optional<double> critical = {};

  Severity judge(double value) const noexcept;
};

/// The default limits. Times in seconds.
struct Tolerance {
  Limit lag{60, 300};
  Limit unanswered{10, 300};
  Limit parked_messages{0, {}};
  Limit projection_lag{60, 300};
  Limit parked_events{0, {}};
  Limit overdue_timers{60, 300};
  Limit parked_timers{0, {}};
};

/// The state of a partition's stream at the broker.
struct StreamLook {
  PartitionId partition = {};
  /// The answer to `read_back` from the last message that counts as published. Unset if none came
  /// in time.
  std::optional<Answer> answer = {};
};

/// The configured broker's answers to a reader.
struct BrokerLook {
  std::string url = {};
  /// The answer to the attempt to connect. Unset if none came in time.
  std::optional<Answer> connected = {};
  /// After a stream without an answer, no further one is queried.
  std::vector<StreamLook> streams = {};

  bool is_connected() const { return connected && connected->kind == Answer::Kind::connected; }
};

/// A part of the database that didn't answer, and why.
struct Unanswered {
  /// "projectors".
  std::string what = {};
  std::string why = {};
};

/// The facts about a store at one moment.
struct Facts {
  Timestamp at = {};
  /// The last event. Unset if the database didn't answer.
  std::optional<GlobalSequence> last = {};
  /// The beginning of commands: "stela ".
  std::string call = "stela ";
  /// True for doctor itself, which must not advise to run doctor.
  bool is_of_doctor = false;
  /// Why the database doesn't answer, or takes no writes. Empty if it does both.
  std::string store_problem = {};
  /// The remedy, if the cause is known.
  std::string store_remedy = {};
  std::vector<Unanswered> unanswered = {};
  /// For a database on a server.
  std::optional<postgres::ServerStatus> server = {};
  /// Unset: the store has none.
  std::optional<OutboxStatus> outbox = {};
  /// Unset: it wasn't queried.
  std::optional<BrokerLook> broker = {};
  /// What the failures of parked messages have in common, the largest group first.
  std::vector<FailureGroup> failures = {};
  std::vector<ProjectorStatus> projectors = {};
  std::vector<ProcessStatus> processes = {};
  std::vector<TimerHold> holds = {};
  std::vector<nats::ConsumerStatus> consumers = {};
  /// The beginning of a finding's counts, by its code and subject, where the members above don't
  /// have it.
  std::map<std::pair<Code, std::string>, Timestamp> since = {};
  /// By projector: the first event that it parked.
  std::map<std::string, GlobalSequence> first_parked = {};
  /// Findings that operators have acknowledged.
  std::vector<Acknowledgement> acknowledged = {};
};

/// The findings, worst first. Critical: the most affected subject, then its causes. Warnings:
/// causes before effects. Acknowledged findings come last.
std::vector<Finding> diagnose(const Facts& facts, const Tolerance& tolerance = {});

/// Merges findings of the same trouble into one, with their number and the first subject's problem.
std::vector<Finding> in_groups(const std::vector<Finding>& findings);

/// A partition's own trouble, whoever owns it; at most one finding.
std::optional<Finding> find_trouble(const PartitionStatus& partition, const Facts& facts = {},
                                    const Tolerance& tolerance = {});

/// True if it lags and no runner drives it: there is none, or its lease has expired.
bool is_unattended(const ProjectorStatus& projector, Timestamp now) noexcept;

/// True if its stream is missing and nothing was published there yet. A worker creates it, or says
/// why it doesn't.
bool is_to_be_made(const PartitionStatus& partition, const Answer& answer) noexcept;

/// At most this many items of a list are named; the others are counted.
inline constexpr std::size_t most_named = 8;

double in_seconds(std::chrono::microseconds time) noexcept;

/// A relay's text with commands as they are run here. Relays don't know the name of the operator's
/// program.
std::string as_run(std::string text, const std::string& call);

/// The code of a partition that is stopped for this reason.
Code code_of(StopReason reason) noexcept;

}  // namespace stela::tool
