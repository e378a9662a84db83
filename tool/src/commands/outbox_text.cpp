#include "commands/outbox_text.hpp"

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "description/finding.hpp"
#include "description/outbox.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

/// The end of the publishable messages: later ones wait until earlier generations are drained.
GlobalSequence open_end(const OutboxStatus& status) {
  bool is_open = false;
  for (const GenerationStatus& generation : status.generations) {
    if (is_open) return generation.first_sequence;
    is_open = !generation.is_drained;
  }
  return GlobalSequence::max();
}

/// True if some of its messages can be published without an operator.
bool can_go_on(const PartitionStatus& partition, GlobalSequence end) {
  if (partition.stopped) return false;
  return partition.redeliveries > 0 ||
         (partition.pending > 0 && (!partition.oldest || *partition.oldest < end));
}

bool reaches_broker(const WorkerStatus& worker, const OutboxStatus& status) {
  if (worker.is_cut_off && !(worker.broker && worker.broker->is_connected())) return false;
  if (!worker.broker || worker.broker->state == BrokerState::connecting) return true;
  return worker.broker->is_connected() || is_misconfigured_in_part(worker, status);
}

/// Its own worker if that is alive, or else a living one, if possible one that reaches the broker.
const WorkerStatus* worker_of(const PartitionStatus& partition, const OutboxStatus& status) {
  const WorkerStatus* found = nullptr;
  for (const WorkerStatus& worker : status.workers) {
    if (!worker.is_alive) continue;
    if (worker.name == partition.owner) return &worker;
    if (found == nullptr || !reaches_broker(*found, status)) found = &worker;
  }
  return found;
}

/// The partitions of older generations that still have pending messages.
std::string older_in_words(const OutboxStatus& status, GlobalSequence end) {
  std::string labels;
  int count = 0;
  for (const PartitionStatus& older : status.partitions) {
    if (older.pending == 0 || !older.oldest || *older.oldest >= end) continue;
    if (++count > 2) return "waits: older generation";
    labels.append(count > 1 ? ", " : "").append(older.id.label());
  }
  return count > 0 ? "waits for " + labels : "waits: older generation";
}

/// The message that stopped a partition: "event 17 can't be published: …". Empty if it is
/// discarded: "event 17 is discarded: …".
std::string poison_of(const PartitionStatus& stopped) {
  constexpr std::string_view before = "event ";
  std::string_view detail = stopped.stopped_detail;
  if (!detail.starts_with(before)) return "SEQUENCE";
  detail.remove_prefix(before.size());
  const std::size_t end = std::min(detail.find_first_not_of("0123456789"), detail.size());
  return std::string{detail.substr(end).starts_with(" is discarded") ? "" : detail.substr(0, end)};
}

}  // namespace

std::string way_out_of(const PartitionStatus& stopped, const std::string& call) {
  const std::string partition = stopped.id.label();
  const std::string adopt = "'" + call + "outbox partitions adopt " + partition + "'";
  if (stopped.stopped == StopReason::poison) {
    const std::string resume = "'" + call + "outbox partitions resume " + partition + "'";
    const std::string poison = poison_of(stopped);
    if (poison.empty()) return resume;
    const std::string mend = way_to_mend(call, stopped.failure);
    return (mend.empty() ? "fix the cause" : mend) + ", or '" + call + "outbox discard " + poison +
           "' for the message, then " + resume;
  }
  if (stopped.stopped == StopReason::foreign_writer) {
    return "find the other program that writes to this stream (another database with the same "
           "nats.stream?), and stop it or give it another stream; only then " +
           adopt + ": two databases that adopt one stream stop each other again and again";
  }
  if (stopped.stopped == StopReason::store_went_back) {
    return "if this is a copy of a database that is still in use, first give it its own stream and "
           "prefix (nats.stream, nats.prefix), and its consumers other names, or it publishes into "
           "the original's stream; if this is a restored backup, '" +
           call + "outbox reconcile --from-broker --dry-run' lists the events that only the " +
           "broker has, and '" + call + "outbox reconcile --from-broker' imports what fits; then " +
           adopt;
  }
  if (stopped.stopped == StopReason::missing) return "'" + call + "outbox partitions sync'";
  if (stopped.stopped == StopReason::broker_lost) {
    return "the partition resumes by itself once the broker has them again; if they are gone for "
           "good, " +
           adopt + ", and then " + way_to_send_again(call);
  }
  if (stopped.stopped == StopReason::damaged) {
    return "restore a backup, or repair the row as it says; then " + adopt;
  }
  if (stopped.stopped == StopReason::unrecognized) {
    return "ask the newer version that stopped it; if that is gone, check the broker, then " +
           adopt;
  }
  return "check the broker, then " + adopt;
}

std::chrono::microseconds longest_flight(const OutboxStatus& status) {
  std::chrono::microseconds longest{0};
  for (const PartitionStatus& partition : status.partitions) {
    longest = std::max(longest, partition.flight_age.value_or(longest));
  }
  return longest;
}

std::string silence_in_words(std::chrono::microseconds flight_age) {
  return "no answer from the broker for " + in_words(flight_age);
}

std::string way_to_send_again(const std::string& call) {
  return "'" + call + "outbox reconcile --against-broker', which sends again what is missing";
}

std::string way_to_mend(const std::string& call, std::optional<FailureClass> failure) {
  switch (failure.value_or(FailureClass::other)) {
    case FailureClass::stream_full:
      return "raise the limit that it names, or use another stream (nats.stream)";
    case FailureClass::stream_missing:
      return "correct nats.stream, or create the stream with '" + call +
             "outbox work --ensure-stream'";
    case FailureClass::stream_sealed:
      return "a sealed stream can't be changed: use another one (nats.stream)";
    case FailureClass::stream_settings:
    case FailureClass::subject:
      return "change the stream as it says with the broker's own tool, or use another one "
             "(nats.stream, nats.prefix)";
    case FailureClass::permission:
      return "allow that to this user (nats.user and the like) in the server's permissions";
    case FailureClass::too_large:
      return "raise max_payload of the server and restart it, or max_msg_size of the stream, "
             "whichever it names";
    case FailureClass::no_answer:
    case FailureClass::rejected:
    case FailureClass::other:
      break;
  }
  return {};
}

std::string way_to_unpark(const std::string& call, std::optional<FailureClass> failure) {
  const std::string mend = way_to_mend(call, failure);
  return "'" + call + "outbox list --state parked' says why; " + mend + (mend.empty() ? "" : ", ") +
         "then '" + call + "outbox retry --all', or '" + call +
         "outbox discard SEQUENCE' for messages that can never be published; messages parked after "
         "them are retried";
}

std::string life_of(const WorkerStatus& worker) {
  if (worker.is_alive) return "yes";
  if (worker.process == WorkerProcess::runs) return "silent, its process is running";
  return worker.process == WorkerProcess::ended ? "no, its process has ended" : "no";
}

LivingWorkers living_workers(const OutboxStatus& status) {
  LivingWorkers living;
  for (const WorkerStatus& worker : status.workers) {
    if (!worker.is_alive) continue;
    const bool is_misconfigured =
        worker.broker && worker.broker->state == BrokerState::misconfigured;
    ++living.all;
    living.cut_off += worker.is_cut_off ? 1 : 0;
    living.misconfigured += is_misconfigured ? 1 : 0;
    if (worker.broker && !worker.broker->is_connected() &&
        (worker.is_cut_off || is_misconfigured)) {
      living.trouble = to_string(*worker.broker);
    }
  }
  return living;
}

bool is_misconfigured_in_part(const WorkerStatus& worker, const OutboxStatus& status) {
  if (!worker.broker || worker.broker->state != BrokerState::misconfigured) return false;
  int backing_off = 0;
  for (const PartitionStatus& partition : status.partitions) {
    backing_off += partition.owner == worker.name && partition.attempts > 0 ? 1 : 0;
  }
  return backing_off > 0 && backing_off < worker.partitions;
}

std::string obstacle_of(const PartitionStatus& partition, const OutboxStatus& status) {
  if (partition.stopped) return {};
  const bool waits = waiting_in(partition) > 0;
  const WorkerStatus* const worker = worker_of(partition, status);
  if (worker != nullptr && !reaches_broker(*worker, status)) return "waits: broker";
  const bool is_attended =
      worker != nullptr && (!status.leasing || worker->name == partition.owner);
  if (!is_attended) return waits ? "no worker" : "";
  const GlobalSequence end = open_end(status);
  return waits && !can_go_on(partition, end) ? older_in_words(status, end) : "";
}

const PartitionStatus* held_up_by(const OutboxStatus& status) {
  const PartitionStatus* stopped = nullptr;
  const GlobalSequence end = open_end(status);
  for (const PartitionStatus& partition : status.partitions) {
    if (can_go_on(partition, end)) return nullptr;
    if (waiting_in(partition) > 0 && partition.stopped) stopped = &partition;
  }
  return stopped;
}

std::int64_t waiting_in(const OutboxStatus& status) {
  return status.pending + status.redeliveries;
}

std::int64_t waiting_in(const PartitionStatus& partition) {
  return partition.pending + partition.redeliveries;
}

std::string at_least(std::int64_t counted, bool is_lower_bound) {
  return in_digits(counted) + (is_lower_bound ? "+" : "");
}

std::string waiting_in_words(const OutboxStatus& status) {
  return at_least(waiting_in(status), status.is_pending_lower_bound);
}

std::string waiting_in_words(const PartitionStatus& partition) {
  return at_least(waiting_in(partition), partition.is_pending_lower_bound);
}

std::string lag_in_words(const OutboxStatus& status) {
  return status.lag ? in_words(*status.lag) : "none";
}

void print_partitions(const OutboxStatus& status, Output& out) {
  print_list(out, description::partition, partitions_of(status));
}

void print(const OutboxStatus& status, std::string_view program, Output& out) {
  sheet_of(description::outbox_status, status).print(out);
  out.line();
  print_partitions(status, out);
  if (!status.workers.empty()) {
    out.line();
    print_list(out, description::worker, status.workers);
  }
  for (const Finding& finding :
       diagnose({.at = status.at, .call = std::string{program} + ' ', .outbox = status})) {
    print_finding(out, finding, status.at);
  }
}

PartitionId to_partition(std::string_view text) {
  if (text == "all") return {0};
  std::string_view digits = text;
  if (!digits.empty() && digits.front() == 'p') digits.remove_prefix(1);
  try {
    return PartitionId::at(static_cast<int>(to_integer(digits, "a partition", {0, 1023})), 1024);
  } catch (const Misuse&) {
    throw Misuse{"a partition is 'all' or p00, p01, …, not '" + in_one_line(text) + "'"};
  }
}

}  // namespace stela::tool
