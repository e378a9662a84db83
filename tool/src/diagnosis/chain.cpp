#include "diagnosis/chain.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "description/outbox.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

/// Adds a finding and its causes.
void follow(Chain& chain, const std::vector<Finding>& findings, std::size_t from) {
  std::optional<std::size_t> next = from;
  // The limit ends the loop if causes form a cycle.
  while (next && chain.size() <= findings.size() + 2) {
    chain.push_back(findings[*next]);
    next = findings[*next].caused_by;
  }
}

std::optional<std::size_t> find_of(const std::vector<Finding>& findings, std::string_view subject) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].subject == subject) return i;
  }
  return {};
}

std::optional<std::size_t> find_of(const std::vector<Finding>& findings, Code code) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].code == code) return i;
  }
  return {};
}

std::string name_of(const OutboxMessage& message) {
  return "message " + std::to_string(message.sequence.value()) + " of " +
         in_one_line(message.stream);
}

/// The kind of object with this name. Empty if the facts lack it.
std::string kind_of(const Facts& facts, std::string_view name) {
  const auto has = [&](const auto& list, auto get) {
    return std::any_of(list.begin(), list.end(), [&](const auto& one) { return get(one) == name; });
  };
  if (facts.outbox) {
    if (has(facts.outbox->partitions, [](const auto& one) { return one.id.label(); })) {
      return "partition ";
    }
    if (has(facts.outbox->workers, [](const auto& one) { return one.name; })) return "worker ";
  }
  if (has(facts.processes, [](const auto& one) { return one.name; })) return "process ";
  if (has(facts.projectors, [](const auto& one) { return one.name; })) return "projector ";
  if (has(facts.consumers, [](const auto& one) { return one.consumer; })) return "consumer ";
  return {};
}

/// Explains what pending messages of a partition wait for.
void explain_pending(Chain& chain, PartitionId partition, const Facts& facts,
                     const std::vector<Finding>& findings) {
  if (const auto own = find_of(findings, partition.label())) return follow(chain, findings, *own);
  // A partition of an earlier generation may hold up all others.
  if (const PartitionStatus* holder = held_up_by(*facts.outbox)) {
    if (const auto stop = find_of(findings, holder->id.label())) {
      return follow(chain, findings, *stop);
    }
  }
  for (const Code code :
       {Code::outbox_unattended, Code::outbox_cut_off, Code::worker_misconfigured}) {
    if (const auto whole = find_of(findings, code)) return follow(chain, findings, *whole);
  }
}

/// An object without a finding of its own may suffer from another's.
void explain_name(Chain& chain, std::string_view kind, std::string_view name, const Facts& facts,
                  const std::vector<Finding>& findings) {
  if (kind == "process ") {
    if (const auto hold = find_of(findings, Code::timers_held)) follow(chain, findings, *hold);
  }
  if (kind == "worker ") {
    for (const WorkerStatus& worker : facts.outbox->workers) {
      if (worker.name != name || worker.is_alive) continue;
      chain.push_back({.code = Code::worker_ended,
                       .severity = Severity::warning,
                       .subject = worker.name,
                       .since = worker.heartbeat_until - worker.heartbeat_ttl,
                       .sentence = "worker '" + in_one_line(worker.name) +
                                   "' isn't alive any more, and holds no partition",
                       .remedy = "start it again if it should run"});
    }
  }
  if (kind != "partition ") return;
  for (const PartitionStatus& partition : facts.outbox->partitions) {
    if (partition.id.label() != name) continue;
    if (waiting_in(partition) > 0) explain_pending(chain, partition.id, facts, findings);
    const auto parked = find_of(findings, Code::outbox_parked);
    if (chain.empty() && partition.parked > 0 && parked) follow(chain, findings, *parked);
  }
}

}  // namespace

Finding describe(const OutboxMessage& message, const Facts& facts) {
  const std::string name = name_of(message);
  const std::string sequence = std::to_string(message.sequence.value());
  Finding found{.subject = sequence, .since = message.since};
  switch (message.state) {
    case MessageState::parked:
      found.code = message.reason == SetAsideReason::behind ? Code::message_parked_behind
                                                            : Code::message_parked;
      found.sentence = name + " is parked";
      if (message.reason == SetAsideReason::behind) {
        found.sentence += " behind an earlier message of its stream";
      } else {
        found.sentence += " (" + word_of(message.reason) + "): " + in_one_line(message.last_error);
        found.failure = message.failure;
        const std::string mend = way_to_mend(facts.call, message.failure);
        found.remedy = mend + (mend.empty() ? "'" : "; then '") + facts.call + "outbox retry " +
                       sequence + (mend.empty() ? "' once the cause is gone; '" : "'; '") +
                       facts.call + "outbox discard " + sequence + "' gives it up";
      }
      break;
    case MessageState::discarded:
      found.code = Code::message_discarded;
      found.sentence = name + " was given up (" + word_of(message.reason) + ")";
      if (!message.last_error.empty()) found.sentence += ": " + in_one_line(message.last_error);
      break;
    case MessageState::published:
      found.code = Code::message_published;
      if (message.redelivery > 0) {
        found.code = Code::message_pending;
        found.sentence = name + " is published, and is to be sent again as redelivery " +
                         std::to_string(message.redelivery) + " in partition " +
                         message.partition.label();
        break;
      }
      found.sentence = name + " is published";
      if (message.since) found.sentence += ", at " + to_string(*message.since);
      if (const std::string place = broker_place_of(message); !place.empty()) {
        found.sentence += ", as " + place + " of partition " + message.partition.label();
      }
      found.since.reset();
      break;
    case MessageState::pending:
    case MessageState::in_flight:
    case MessageState::retrying:
      found.code = Code::message_pending;
      found.since = message.recorded_at;
      found.sentence = name + " isn't published yet; it is " +
                       (message.state == MessageState::pending     ? "pending"
                        : message.state == MessageState::in_flight ? "in flight"
                                                                   : "to be tried again") +
                       " in partition " + message.partition.label();
      if (!message.last_error.empty()) found.sentence += ": " + in_one_line(message.last_error);
      break;
  }
  found.severity = facts_of(found.code).severity;
  return found;
}

Chain chain_of_worst(const std::vector<Finding>& findings) {
  Chain chain;
  if (findings.empty()) {
    chain.push_back({.code = Code::well, .sentence = "nothing is wrong"});
  } else {
    follow(chain, findings, 0);
  }
  return chain;
}

Chain chain_of_name(const Facts& facts, const std::vector<Finding>& findings,
                    std::string_view name) {
  const std::string kind = kind_of(facts, name);
  Chain chain;
  if (const auto found = find_of(findings, name)) {
    follow(chain, findings, *found);
    return chain;
  }
  explain_name(chain, kind, name, facts, findings);
  if (chain.empty() && !kind.empty()) {
    chain.push_back({.code = Code::well,
                     .subject = std::string{name},
                     .sentence = "nothing is wrong with " + kind + in_one_line(name)});
  }
  return chain;
}

Chain chain_of_message(OutboxOperations& outbox, const OutboxMessage& message, const Facts& facts,
                       const std::vector<Finding>& findings) {
  Chain chain{describe(message, facts)};
  if (chain.front().code == Code::message_pending) {
    explain_pending(chain, message.partition, facts, findings);
  } else if (chain.front().code == Code::message_parked_behind) {
    const auto parked =
        outbox.list({.state = MessageState::parked, .stream = message.stream, .limit = 1});
    if (!parked.empty() && parked.front().sequence < message.sequence) {
      chain.push_back(describe(parked.front(), facts));
    }
  }
  return chain;
}

Chain chain_without_message(const StoredEvent& event, const Facts& facts,
                            const std::vector<Finding>& findings) {
  Finding found{.code = Code::event_local,
                .subject = std::to_string(event.sequence.value()),
                .sentence = event.describe() + " isn't one that is published"};
  if (!event.publishes()) return {found};
  found.sentence = event.describe() + " has no message in a partition that exists";
  if (const auto missing = find_of(findings, Code::partition_missing)) {
    found.code = Code::message_pending;
    Chain chain{found};
    follow(chain, findings, *missing);
    return chain;
  }
  found.sentence += ": it is older than the outbox, or its message is missing";
  found.remedy = "'" + facts.call + "outbox reconcile --dry-run' says what is missing";
  return {found};
}

}  // namespace stela::tool
