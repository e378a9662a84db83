#include "commands/outbox_text.hpp"

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "event_text.hpp"

#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

double in_seconds(std::chrono::microseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

template <class Items, class Write>
void add_array(std::string& out, const Items& items, Write write) {
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    write(out, items[i]);
  }
  out += ']';
}

void write_partition(std::string& out, const PartitionStatus& partition, bool is_upper_bound) {
  json::ObjectWriter object{out};
  object.add("partition", partition.id.label())
      .add("owner", partition.owner)
      .add("epoch", partition.epoch)
      .add("lease_left_s", in_seconds(partition.lease_left))
      .add("is_current", partition.is_current)
      .add("pending", partition.pending)
      .add("in_flight", partition.in_flight)
      .add("retrying", partition.retrying)
      .add("redeliveries", partition.redeliveries)
      .add("parked", partition.parked)
      .add("discarded", partition.discarded)
      .add("published", partition.published)
      .add("published_through", partition.published_through.value())
      .add("broker_sequence", partition.broker_sequence)
      .add("attempts", partition.attempts)
      .add("last_error", partition.last_error)
      .add("stopped", partition.stopped)
      .add("stopped_detail", partition.stopped_detail)
      .add("lost", partition.lost)
      .add("lost_is_upper_bound", is_upper_bound)
      .add("is_loss_supposed", partition.is_loss_supposed);
  if (partition.lost_at) object.add("lost_at", to_string(*partition.lost_at));
  if (partition.flight_age) object.add("flight_age_s", in_seconds(*partition.flight_age));
  if (partition.oldest) object.add("oldest", partition.oldest->value());
  if (partition.oldest_recorded_at) {
    object.add("oldest_recorded_at", to_string(*partition.oldest_recorded_at));
  }
  if (partition.waiting_since) object.add("waiting_since", to_string(*partition.waiting_since));
  if (partition.next_attempt_at)
    object.add("next_attempt_at", to_string(*partition.next_attempt_at));
  object.close();
}

void write_worker(std::string& out, const WorkerStatus& worker) {
  json::ObjectWriter{out}
      .add("worker", worker.name)
      .add("host", worker.host)
      .add("pid", worker.pid)
      .add("started_at", to_string(worker.started_at))
      .add("heartbeat_until", to_string(worker.heartbeat_until))
      .add("is_alive", worker.is_alive)
      .add("partitions", worker.partitions)
      .add("broker", worker.broker)
      .add("is_cut_off", worker.is_cut_off)
      .close();
}

void write_generation(std::string& out, const GenerationStatus& generation) {
  json::ObjectWriter{out}
      .add("generation", generation.number)
      .add("first_sequence", generation.first_sequence.value())
      .add("partition_count", generation.partition_count)
      .add("is_drained", generation.is_drained)
      .close();
}

std::string age_of(const PartitionStatus& partition, Timestamp now) {
  if (!partition.waiting_since) return "-";
  return in_words(std::max(now - *partition.waiting_since, std::chrono::microseconds{0}));
}

std::string state_of(const PartitionStatus& partition) {
  if (!partition.stopped.empty()) return "stopped: " + partition.stopped;
  if (partition.attempts > 0) return "backing off: " + partition.last_error;
  if (partition.flight_age && *partition.flight_age > quiet_flight) {
    return silence_in_words(*partition.flight_age);
  }
  if (partition.is_loss_supposed) return "ok, a worker has yet to check for a loss";
  if (partition.lost_at) return "ok, after a loss at the broker";
  const bool is_empty = partition.pending + partition.redeliveries == 0;
  if (!partition.is_current) return is_empty ? "drained" : "draining";
  return "ok";
}

/// Where what can be published ends: what comes later waits until earlier generations are drained.
GlobalSequence open_end(const OutboxStatus& status) {
  bool is_open = false;
  for (const GenerationStatus& generation : status.generations) {
    if (is_open) return generation.first_sequence;
    is_open = !generation.is_drained;
  }
  return GlobalSequence::max();
}

/// Of all that may be lost, a worker has yet to check whether it is.
bool are_losses_supposed(const OutboxStatus& status) {
  return std::all_of(
      status.partitions.begin(), status.partitions.end(),
      [](const PartitionStatus& each) { return !each.lost_at || each.is_loss_supposed; });
}

/// Something of it can be published without an operator.
bool can_go_on(const PartitionStatus& partition, GlobalSequence end) {
  if (!partition.stopped.empty()) return false;
  return partition.redeliveries > 0 ||
         (partition.pending > 0 && (!partition.oldest || *partition.oldest < end));
}

void print_advice(const OutboxStatus& status, std::string_view program, Output& out) {
  const std::string call{program};
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.stopped.empty()) continue;
    out.line("Partition " + partition.id.label() + " is stopped (" + partition.stopped +
             "): " + partition.stopped_detail + " → " + way_out_of(partition, call + ' '));
  }
  if (status.losses > 0) {
    out.line(loss_in_words(status) + " → " + way_to_settle(status, call + ' '));
  }
  if (status.parked > 0) {
    out.line(counted(status.parked, "message") + " parked → " + way_to_unpark(call + ' '));
  }
  if (waiting_in(status) == 0 || held_up_by(status) != nullptr) return;
  const LivingWorkers living = living_workers(status);
  if (living.all == 0) {
    out.line("Messages are pending and there is no live worker → '" + call + " outbox work'");
  } else if (living.all == living.cut_off) {
    out.line("Messages are pending and no worker reaches its broker: " +
             in_one_line(living.trouble) + " → " + way_to_the_broker);
  }
}

}  // namespace

std::string way_out_of(const PartitionStatus& stopped, const std::string& call) {
  const std::string partition = stopped.id.label();
  const std::string adopt = "'" + call + "outbox partitions adopt " + partition + "'";
  if (stopped.stopped == "poison") {
    return "fix the cause, or '" + call + "outbox discard' the message, then '" + call +
           "outbox partitions resume " + partition + "'";
  }
  if (stopped.stopped == "foreign_writer") {
    return "find the other program that writes to this stream (another database with the same "
           "nats.stream?), and stop it or give it another stream; only then " +
           adopt + ": two databases that adopt one stream stop each other again and again";
  }
  if (stopped.stopped == "store_went_back") {
    return "if this is a copy of a database that is still in use, first give it its own stream and "
           "prefix (nats.stream, nats.prefix), and its consumers other names, or it publishes into "
           "the original's stream; if this is a restored backup, '" +
           call + "outbox reconcile --against-broker --dry-run' says what the stream is missing; " +
           "then " + adopt;
  }
  if (stopped.stopped == "unknown") return "'" + call + "outbox partitions sync'";
  if (stopped.stopped == "broker_lost") {
    return "the partition goes on by itself once the broker has them again; if they are gone for "
           "good, " +
           adopt + ", and " + way_to_settle(call);
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

bool is_lost_upper_bound(const OutboxStatus& status) {
  return status.fence == Fence::subject;
}

std::string loss_in_words(const OutboxStatus& status) {
  if (status.lost == 0) {
    return std::string{"Published messages may be missing at the broker"} +
           (are_losses_supposed(status) ? ", which a worker has yet to check" : "");
  }
  return "Up to " + counted(status.lost, "published message") + " " +
         (status.lost == 1 ? "is" : "are") + " missing at the broker";
}

std::string way_to_settle(const OutboxStatus& status, const std::string& call) {
  if (!are_losses_supposed(status)) return way_to_settle(call);
  return "see '" + call + "outbox status' once '" + call + "outbox work' has run";
}

std::string way_to_settle(const std::string& call) {
  return "'" + call +
         "outbox reconcile --against-broker' counts what is missing there and publishes it again; "
         "--accept-loss leaves it missing";
}

std::string way_to_unpark(const std::string& call) {
  return "'" + call + "outbox list --state parked' says why; then '" + call +
         "outbox retry --all', or '" + call +
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
    const bool is_misconfigured = worker.broker.starts_with("misconfigured");
    ++living.all;
    living.cut_off += worker.is_cut_off ? 1 : 0;
    living.misconfigured += is_misconfigured ? 1 : 0;
    if (worker.is_cut_off || is_misconfigured) living.trouble = worker.broker;
  }
  return living;
}

const PartitionStatus* held_up_by(const OutboxStatus& status) {
  const PartitionStatus* stopped = nullptr;
  const GlobalSequence end = open_end(status);
  for (const PartitionStatus& partition : status.partitions) {
    if (can_go_on(partition, end)) return nullptr;
    const bool waits = partition.pending + partition.redeliveries > 0;
    if (waits && !partition.stopped.empty()) stopped = &partition;
  }
  return stopped;
}

std::int64_t waiting_in(const OutboxStatus& status) {
  return status.pending + status.redeliveries;
}

std::string to_json(const OutboxStatus& status) {
  std::string out;
  json::ObjectWriter object{out};
  object.add("at", to_string(status.at))
      .add("fence", to_string(status.fence))
      .add("leasing", status.leasing)
      .add("partitioner", status.partitioner)
      .add("partition_count", status.partition_count)
      .add("pending", status.pending)
      .add("in_flight", status.in_flight)
      .add("retrying", status.retrying)
      .add("redeliveries", status.redeliveries)
      .add("parked", status.parked)
      .add("discarded", status.discarded)
      .add("published", status.published)
      .add("stopped", status.stopped)
      .add("losses", status.losses)
      .add("lost", status.lost)
      .add("lost_is_upper_bound", is_lost_upper_bound(status));
  if (status.lag) {
    object.add("lag_s", in_seconds(*status.lag));
  } else {
    object.key("lag_s").append("null");
  }
  add_array(object.key("partitions"), status.partitions,
            [&](std::string& text, const PartitionStatus& partition) {
              write_partition(text, partition, is_lost_upper_bound(status));
            });
  add_array(object.key("workers"), status.workers, write_worker);
  add_array(object.key("generations"), status.generations, write_generation);
  object.close();
  return out;
}

std::string to_json(const OutboxMessage& message) {
  std::string out;
  json::ObjectWriter object{out};
  object.add("sequence", message.sequence.value())
      .add("state", to_string(message.state))
      .add("partition", message.partition.label())
      .add("stream", message.stream)
      .add("version", message.version.value())
      .add("id", message.event_id.to_string())
      .add("type", message.type)
      .add("recorded_at", to_string(message.recorded_at))
      .add("attempts", message.attempts)
      .add("reason", message.reason)
      .add("last_error", in_one_line(message.last_error));
  if (message.redelivery > 0) object.add("redelivery", message.redelivery);
  if (message.next_attempt_at) object.add("next_attempt_at", to_string(*message.next_attempt_at));
  if (message.since) object.add("since", to_string(*message.since));
  object.close();
  return out;
}

std::string lag_in_words(const OutboxStatus& status) {
  return status.lag ? in_words(*status.lag) : "none";
}

void print_partitions(const OutboxStatus& status, Output& out) {
  using Align = Table::Align;
  // What an operator looks for comes first: narrow terminals cut off the rest.
  Table table{{{"PARTITION"},
               {"PENDING", Align::right},
               {"OLDEST", Align::right},
               {.title = "STATE", .most = 24},
               {"IN FLIGHT", Align::right},
               {"RETRYING", Align::right},
               {"PARKED", Align::right},
               {"OWNER"},
               {"LEASE", Align::right},
               {"PUBLISHED", Align::right}}};
  for (const PartitionStatus& partition : status.partitions) {
    table.add({partition.id.label(), in_digits(partition.pending + partition.redeliveries),
               age_of(partition, status.at), state_of(partition), in_digits(partition.in_flight),
               in_digits(partition.retrying), in_digits(partition.parked),
               partition.owner.empty() ? "-" : partition.owner,
               partition.owner.empty() ? "-" : in_words(partition.lease_left),
               in_digits(partition.published)});
  }
  table.print(out);
}

void print_workers(const OutboxStatus& status, Output& out) {
  Table table{{{"WORKER"},
               {.title = "ALIVE", .most = 24},
               {.title = "BROKER", .most = 24},
               {"PARTITIONS", Table::Align::right},
               {"HEARTBEAT UNTIL"},
               {"STARTED"},
               {"PID", Table::Align::right},
               {"HOST"}}};
  for (const WorkerStatus& worker : status.workers) {
    table.add({worker.name, life_of(worker), in_one_line(worker.broker),
               std::to_string(worker.partitions), short_time(worker.heartbeat_until),
               short_time(worker.started_at), std::to_string(worker.pid), worker.host});
  }
  table.print(out);
}

void print(const OutboxStatus& status, std::string_view program, Output& out) {
  std::string facts{"fence "};
  facts.append(to_string(status.fence)).append(", ");
  facts += counted(status.partition_count, "partition");
  facts.append(" by ").append(status.partitioner);
  facts.append(status.leasing ? ", leasing on" : ", leasing off");
  Sheet{}
      .add("outbox", facts)
      .add("pending", in_digits(status.pending + status.redeliveries))
      .add("in flight", in_digits(status.in_flight))
      .add("retrying", in_digits(status.retrying))
      .add("parked", in_digits(status.parked))
      .add("discarded", in_digits(status.discarded))
      .add("published", in_digits(status.published))
      .add("lag", lag_in_words(status))
      .print(out);
  out.line();
  print_partitions(status, out);
  if (!status.workers.empty()) {
    out.line();
    print_workers(status, out);
  }
  print_advice(status, program, out);
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
