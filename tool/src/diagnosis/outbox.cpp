// Findings about an outbox, its partitions and its workers.
#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "diagnosis/findings.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace stela::tool {
namespace {

/// Who takes over the partitions of a dead worker.
std::string heir(const OutboxStatus& status, const Facts& facts) {
  const LivingWorkers living = living_workers(status);
  return living.all > living.cut_off ? "a live worker takes it over"
                                     : "start a worker: '" + facts.call + "outbox work'";
}

/// A dead worker without partitions delays nobody.
void judge_lost_worker(const WorkerStatus& worker, const std::string& heir, const Facts& facts,
                       Findings& findings) {
  const std::string who = "worker '" + in_one_line(worker.name) + "'";
  if (worker.process == WorkerProcess::runs) {
    findings.add({.code = Code::worker_silent,
                  .subject = worker.name,
                  .since = worker.heartbeat_until - worker.heartbeat_ttl,
                  .trouble = "silent",
                  .sentence = who + " is silent, and its process " + std::to_string(worker.pid) +
                              " is running",
                  .remedy = "'" + facts.call +
                            "check' says whether the database can be written to; if it can, see "
                            "the worker's log, end it and start it again"});
  } else if (worker.partitions > 0) {
    findings.add({.code = Code::worker_ended,
                  .subject = worker.name,
                  .since = worker.heartbeat_until - worker.heartbeat_ttl,
                  .trouble = "gone",
                  .sentence = who + " is gone (" +
                              (worker.process == WorkerProcess::ended
                                   ? "its process has ended"
                                   : "on host " + in_one_line(worker.host)) +
                              ") and still holds " + counted(worker.partitions, "partition"),
                  .remedy = heir + " when its leases expire; start it again if it should run"});
  }
}

void judge_broker_of(const WorkerStatus& worker, const Facts& facts, Findings& findings) {
  const std::string who = "worker '" + in_one_line(worker.name) + "'";
  const std::string broker = worker.broker ? in_one_line(to_string(*worker.broker)) : "";
  // Once connected again, the worker takes part at its next heartbeat.
  if (worker.is_cut_off && !(worker.broker && worker.broker->is_connected())) {
    findings.add({.code = Code::worker_cut_off,
                  .subject = worker.name,
                  .since = worker.broker_since,
                  .trouble = "cut off",
                  .sentence = who + " is cut off from its broker: " + broker,
                  .remedy = way_to_the_broker});
  } else if (worker.broker && worker.broker->state == BrokerState::misconfigured) {
    findings.add({.code = Code::worker_misconfigured,
                  .subject = worker.name,
                  .since = worker.broker_since,
                  .trouble = "misconfigured",
                  .sentence = who + " can't publish everything: " + broker,
                  .remedy = "configure the broker as it says; messages wait, and none is lost; '" +
                            facts.call + "doctor' looks at each stream"});
  }
}

/// "3 messages are pending".
std::string pending_in_words(const OutboxStatus& status) {
  return waiting_in(status) == 1 ? "1 message is pending"
                                 : waiting_in_words(status) + " messages are pending";
}

void judge_workers(const OutboxStatus& status, const Facts& facts, Findings& findings) {
  for (const WorkerStatus& worker : status.workers) {
    if (worker.is_alive) {
      judge_broker_of(worker, facts, findings);
    } else {
      judge_lost_worker(worker, heir(status, facts), facts, findings);
    }
  }
  // Messages that wait for a stopped partition don't wait for a worker.
  if (waiting_in(status) == 0 || held_up_by(status) != nullptr) return;
  const LivingWorkers living = living_workers(status);
  const std::string waiting = pending_in_words(status);
  std::optional<Timestamp> since;
  if (status.lag) since = facts.at - *status.lag;
  if (living.all == 0) {
    findings.add({.code = Code::outbox_unattended,
                  .since = since,
                  .trouble = "no worker",
                  .sentence = waiting + ", and there is no live worker",
                  .remedy = "'" + facts.call + "outbox work'"});
  } else if (living.all == living.cut_off) {
    findings.add(
        {.code = Code::outbox_cut_off,
         .since = since,
         .trouble = "no worker reaches the broker",
         .sentence = waiting + ", and no worker reaches its broker: " + in_one_line(living.trouble),
         .remedy = way_to_the_broker});
  }
}

/// "; next retry in 2.1 s"
std::string when_retried(const PartitionStatus& partition, Timestamp now) {
  if (!partition.next_attempt_at) return {};
  const auto left = *partition.next_attempt_at - now;
  return "; next retry " + (left.count() > 0 ? "in " + in_words(left) : std::string{"now"});
}

/// The remedy for a back-off.
std::string way_on(const PartitionStatus& partition, const Facts& facts) {
  const std::string mend = way_to_mend(facts.call, partition.failure);
  if (mend.empty()) {
    const std::string more = "; '" + facts.call + "doctor' says what to do";
    return "tried again by itself" + (facts.is_of_doctor ? "" : more);
  }
  return mend + "; tried again by itself then, and at once by '" + facts.call +
         "outbox partitions retry " + partition.id.label() + "'";
}

/// A doubt that the worker couldn't have when it stopped the partition.
std::string what_to_doubt(StopReason reason) {
  // If the stream is wrong, an adoption sends everything there.
  if (reason == StopReason::broker_lost) return "; but first: is nats.stream right?";
  if (reason == StopReason::store_went_back) return ", those imported since then among them";
  return {};
}

Finding describe_stop(const PartitionStatus& partition, const Facts& facts) {
  const std::string word = word_of(partition.stopped);
  const std::string detail = as_run(in_one_line(partition.stopped_detail), facts.call);
  return {.code = code_of(*partition.stopped),
          .severity = Severity::critical,
          .subject = partition.id.label(),
          .since = partition.stopped_at,
          .trouble = "stopped: " + word,
          .failure = partition.failure,
          .sentence = "partition " + partition.id.label() + " is stopped (" + word + ")" +
                      (detail.empty() ? "" : ": " + detail + what_to_doubt(*partition.stopped)),
          .remedy = way_out_of(partition, facts.call)};
}

/// Workers continue after lost messages, but only a person can restore them.
void judge_losses(const PartitionStatus& partition, const Facts& facts, Findings& findings) {
  if (!partition.uncompared_since || partition.stopped) return;
  findings.add({.code = Code::partition_uncompared,
                .subject = partition.id.label(),
                .since = partition.uncompared_since,
                .trouble = "not compared",
                .sentence = "partition " + partition.id.label() +
                            " was adopted, and what may be missing at its broker isn't looked for "
                            "and sent again yet",
                .remedy = "'" + facts.call + "outbox reconcile --against-broker'"});
}

void judge_partition(const PartitionStatus& partition, const Facts& facts,
                     const Tolerance& tolerance, const std::string& heir, Findings& findings) {
  const std::string label = partition.id.label();
  if (auto trouble = find_trouble(partition, facts, tolerance)) findings.add(std::move(*trouble));
  if (!partition.owner.empty() && partition.lease_left.count() <= 0) {
    findings.add({.code = Code::partition_lease_expired,
                  .subject = label,
                  .since = facts.at + partition.lease_left,
                  .trouble = "lease expired",
                  .sentence = "partition " + label + " is held by '" +
                              in_one_line(partition.owner) + "', whose lease has expired",
                  .remedy = heir});
  }
  judge_losses(partition, facts, findings);
}

/// ": p03 12, p04 1"
std::string where_parked(const OutboxStatus& status) {
  std::vector<const PartitionStatus*> with;
  for (const PartitionStatus& each : status.partitions) {
    if (each.parked > 0) with.push_back(&each);
  }
  std::stable_sort(with.begin(), with.end(),
                   [](const auto* a, const auto* b) { return a->parked > b->parked; });
  std::string where;
  for (std::size_t i = 0; i < std::min(with.size(), most_named); ++i) {
    where.append(where.empty() ? ": " : ", ").append(with[i]->id.label());
    where.append(" ").append(in_digits(with[i]->parked));
  }
  if (with.size() <= most_named) return where;
  return where + " and " + std::to_string(with.size() - most_named) + " partitions more";
}

/// ". Event 4690: its payload of 1.3 MiB; max_payload of the server is 1 MiB", and how many other
/// streams wait for the same reason.
std::string why_parked(const std::vector<FailureGroup>& failures) {
  if (failures.empty()) return {};
  const FailureGroup& most = failures.front();
  std::string text = "; event " + std::to_string(most.sample.sequence.value());
  if (most.streams > 1) text += ", and in " + counted(most.streams, "stream") + " alike";
  return text + ": " + in_one_line(most.sample.last_error);
}

}  // namespace

std::string as_run(std::string text, const std::string& call) {
  constexpr std::string_view command = "'outbox ";
  for (std::size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
    text.insert(at + 1, call);
    at += call.size() + command.size();
  }
  return text;
}

Code code_of(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::poison:
      return Code::partition_poison;
    case StopReason::foreign_writer:
      return Code::partition_foreign_writer;
    case StopReason::broker_lost:
      return Code::partition_broker_lost;
    case StopReason::store_went_back:
      return Code::partition_store_went_back;
    case StopReason::unreadable:
      return Code::partition_unreadable;
    case StopReason::damaged:
      return Code::partition_damaged;
    case StopReason::missing:
      return Code::partition_missing;
    case StopReason::unrecognized:
      return Code::partition_unrecognized;
  }
  return Code::partition_unrecognized;
}

std::optional<Finding> find_trouble(const PartitionStatus& partition, const Facts& facts,
                                    const Tolerance& tolerance) {
  const std::string label = partition.id.label();
  if (partition.stopped) return describe_stop(partition, facts);
  if (partition.attempts > 0) {
    const std::string error = in_one_line(partition.last_error);
    return Finding{.code = Code::partition_backing_off,
                   .severity = Severity::warning,
                   .subject = label,
                   .since = partition.backing_since,
                   .trouble = "backing off: " + error,
                   .failure = partition.failure,
                   .sentence = "partition " + label + " is backing off: " + error +
                               when_retried(partition, facts.at),
                   .remedy = way_on(partition, facts)};
  }
  const auto silence = partition.flight_age.value_or(std::chrono::microseconds{0});
  const Severity severity = tolerance.unanswered.judge(in_seconds(silence));
  if (severity == Severity::fine) return {};
  return Finding{.code = Code::partition_unanswered,
                 .severity = severity,
                 .subject = label,
                 .since = facts.at - silence,
                 .trouble = "no answer from the broker",
                 .sentence = "partition " + label + ": " + silence_in_words(silence),
                 .remedy =
                     "see the broker and the way there; what is in flight is sent again if "
                     "need be, and none is lost"};
}

void judge_outbox(const OutboxStatus& status, const Facts& facts, const Tolerance& tolerance,
                  Findings& findings) {
  judge_workers(status, facts, findings);
  for (const PartitionStatus& partition : status.partitions) {
    judge_partition(partition, facts, tolerance, heir(status, facts), findings);
  }
  const auto lag = status.lag.value_or(std::chrono::microseconds{0});
  findings.add_judged(
      tolerance.lag, in_seconds(lag),
      {.code = Code::outbox_late,
       .since = facts.at - lag,
       .trouble = "late",
       .sentence = "the oldest message has been pending for " + in_words(lag),
       .remedy = "see the partitions and the broker: '" + facts.call + "outbox status'"});
  std::optional<FailureClass> most;
  if (!facts.failures.empty()) most = facts.failures.front().sample.failure;
  std::optional<Timestamp> parked_since;
  for (const FailureGroup& group : facts.failures) {
    parked_since = std::min(parked_since.value_or(group.first_at), group.first_at);
  }
  findings.add_judged(tolerance.parked_messages, static_cast<double>(status.parked),
                      {.code = Code::outbox_parked,
                       .since = parked_since,
                       .latest = status.last_parked_at,
                       .amount = status.parked,
                       .trouble = "parked messages",
                       .failure = most,
                       .sentence = counted(status.parked, "message") + " parked" +
                                   where_parked(status) + why_parked(facts.failures),
                       .remedy = way_to_unpark(facts.call, most)});
}

}  // namespace stela::tool
