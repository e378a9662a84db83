// The only judge of a store: what is known of it, and what is wrong by that.
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

/// Above the first it is a warning, above the second critical; unset: never.
struct Limit {
  std::optional<double> warning = {};
  std::optional<double> critical = {};

  Severity judge(double value) const noexcept;
};

/// What is tolerated, unless it is said otherwise. Times in seconds.
struct Tolerance {
  Limit lag{60, 300};
  Limit unanswered{10, 300};
  Limit parked_messages{0, {}};
  Limit projection_lag{60, 300};
  Limit parked_events{0, {}};
  Limit overdue_timers{60, 300};
  Limit parked_timers{0, {}};
};

/// What a partition's stream is like, as the broker has it.
struct StreamLook {
  PartitionId partition = {};
  /// To `read_back` from the last message that counts as published; unset if none came in time.
  std::optional<Answer> answer = {};
};

/// What the broker of the settings answered to one who only looks.
struct BrokerLook {
  std::string url = {};
  /// To the attempt to connect; unset if none came in time.
  std::optional<Answer> connected = {};
  /// None is asked after one that gave no answer.
  std::vector<StreamLook> streams = {};

  bool is_connected() const { return connected && connected->kind == Answer::Kind::connected; }
};

/// A part of the database that didn't answer, and why.
struct Unanswered {
  /// "projectors".
  std::string what = {};
  std::string why = {};
};

/// What was asked of a store at one moment.
struct Facts {
  Timestamp at = {};
  /// The last event; unset unless the database answered.
  std::optional<GlobalSequence> last = {};
  /// What commands begin with: "stela ".
  std::string call = "stela ";
  /// The doctor says all that it knows: advice to ask it leads nowhere.
  bool is_of_doctor = false;
  /// Why the database doesn't answer, or takes no writes; empty if it does.
  std::string store_problem = {};
  /// What ends that, if its cause is known.
  std::string store_remedy = {};
  std::vector<Unanswered> unanswered = {};
  /// Of a database on a server.
  std::optional<postgres::ServerStatus> server = {};
  /// Unset: there is none.
  std::optional<OutboxStatus> outbox = {};
  /// Unset: it wasn't asked.
  std::optional<BrokerLook> broker = {};
  /// If messages are parked: what their failures have in common, the largest group first.
  std::vector<FailureGroup> failures = {};
  std::vector<ProjectorStatus> projectors = {};
  std::vector<ProcessStatus> processes = {};
  std::vector<TimerHold> holds = {};
  std::vector<nats::ConsumerStatus> consumers = {};
  /// When what a finding counts began, where the counts above don't say it: by its code and
  /// subject.
  std::map<std::pair<Code, std::string>, Timestamp> since = {};
  /// By projector: the first event that it parked.
  std::map<std::string, GlobalSequence> first_parked = {};
  /// Findings that operators know of.
  std::vector<Acknowledgement> acknowledged = {};
};

/// What is wrong, the worst first: of critical ones what suffers most, which its causes follow; of
/// warnings causes before what they cause. What is known comes last.
std::vector<Finding> diagnose(const Facts& facts, const Tolerance& tolerance = {});

/// One for all that are in the same trouble: it says of how many, and what is wrong with the first.
std::vector<Finding> in_groups(const std::vector<Finding>& findings);

/// What is wrong with a partition itself, whoever has it; at most one thing.
std::optional<Finding> find_trouble(const PartitionStatus& partition, const Facts& facts = {},
                                    const Tolerance& tolerance = {});

/// It is behind, and no runner drives it: there is none, or its lease is over.
bool is_unattended(const ProjectorStatus& projector, Timestamp now) noexcept;

/// Its stream is missing, and nothing was published there yet: a worker makes it, or says why it
/// doesn't.
bool is_to_be_made(const PartitionStatus& partition, const Answer& answer) noexcept;

/// So many of a list are named; the others are counted.
inline constexpr std::size_t most_named = 8;

double in_seconds(std::chrono::microseconds time) noexcept;

/// What a relay said, with the commands as they are run here: relays don't know what the program is
/// called that an operator has.
std::string as_run(std::string text, const std::string& call);

/// The code of a partition that is stopped for this reason.
Code code_of(StopReason reason) noexcept;

}  // namespace stela::tool
