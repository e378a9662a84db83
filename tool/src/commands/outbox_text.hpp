// The outbox as the tool shows it.
#pragma once

#include "cli/output.hpp"

#include <stela/outbox/messages.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

void print(const OutboxStatus& status, std::string_view program, Output& out);
void print_partitions(const OutboxStatus& status, Output& out);

/// "p07", "7" or "all". Misuse if it is no partition's label.
PartitionId to_partition(std::string_view text);

/// "2.1 s", or "none" if nothing waits.
std::string lag_in_words(const OutboxStatus& status);

/// What to do about messages that are gone at the broker, once their partition is adopted.
std::string way_to_send_again(const std::string& call);

/// So long after the last acknowledgement something is wrong: twice what a worker waits by default.
constexpr std::chrono::seconds quiet_flight{10};
/// How long any partition has waited for an answer to what is in flight; 0 if nothing is.
std::chrono::microseconds longest_flight(const OutboxStatus& status);
/// "no answer from the broker for 12 s".
std::string silence_in_words(std::chrono::microseconds flight_age);

/// What an operator changes, and where, so that such messages are published. Empty if nothing is
/// known to help but waiting, or to look closer.
std::string way_to_mend(const std::string& call, std::optional<FailureClass> failure);
/// What to do about parked messages, most of which met this.
std::string way_to_unpark(const std::string& call, std::optional<FailureClass> failure = {});
/// Whether a worker is alive, as far as its heartbeat and its process tell.
std::string life_of(const WorkerStatus& worker);
/// What an operator does about a partition that is stopped; `call` is what commands begin with.
std::string way_out_of(const PartitionStatus& stopped, const std::string& call);

/// Only some partitions of this worker back off: the broker isn't set up for those, and has the
/// others.
bool is_misconfigured_in_part(const WorkerStatus& worker, const OutboxStatus& status);
/// What a partition waits for with which nothing is wrong: "waits: broker", "no worker",
/// "waits for p02", "waits: older generation". Empty if it waits for nothing.
std::string obstacle_of(const PartitionStatus& partition, const OutboxStatus& status);

struct LivingWorkers {
  std::int64_t all = 0;
  /// Those that don't reach their broker.
  std::int64_t cut_off = 0;
  /// Those whose broker isn't set up for all that they are to publish.
  std::int64_t misconfigured = 0;
  /// How one of these sees its broker.
  std::string trouble = {};
};
LivingWorkers living_workers(const OutboxStatus& status);
constexpr const char* way_to_the_broker =
    "start the broker, or correct nats.url and the credentials; messages wait, and none is lost";

/// A stopped partition that all pending messages wait for, in it or as later generations; null if
/// some can be published without an operator, or none is pending.
const PartitionStatus* held_up_by(const OutboxStatus& status);

/// How many are yet to be published: pending (in flight and retrying among them), and to be sent
/// again.
std::int64_t waiting_in(const OutboxStatus& status);
std::int64_t waiting_in(const PartitionStatus& partition);
/// "12,345", or "10,000+" if there are more than were counted.
std::string waiting_in_words(const OutboxStatus& status);
std::string waiting_in_words(const PartitionStatus& partition);
std::string at_least(std::int64_t counted, bool is_lower_bound);

}  // namespace stela::tool
