// Texts about the outbox.
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

/// "p07", "7" or "all". Misuse if it isn't a partition's label.
PartitionId to_partition(std::string_view text);

/// "2.1 s", or "none" if nothing is pending.
std::string lag_in_words(const OutboxStatus& status);

/// Advice on messages that the broker lost, once their partition is adopted.
std::string way_to_send_again(const std::string& call);

/// After this long without an acknowledgement something is wrong: twice a worker's default wait.
constexpr std::chrono::seconds quiet_flight{10};
/// The longest time that a partition has waited for an answer to messages in flight; 0 if there are
/// none.
std::chrono::microseconds longest_flight(const OutboxStatus& status);
/// "no answer from the broker for 12 s".
std::string silence_in_words(std::chrono::microseconds flight_age);

/// The change that lets such messages be published. Empty if only waiting, or a closer look, helps.
std::string way_to_mend(const std::string& call, std::optional<FailureClass> failure);
/// Advice on parked messages, most of which had this failure.
std::string way_to_unpark(const std::string& call, std::optional<FailureClass> failure = {});
/// Whether a worker is alive, judged by its heartbeat and its process.
std::string life_of(const WorkerStatus& worker);
/// Advice on a stopped partition. `call` is the beginning of commands.
std::string way_out_of(const PartitionStatus& stopped, const std::string& call);

/// True if only some partitions of this worker back off: the broker is set up for the others only.
bool is_misconfigured_in_part(const WorkerStatus& worker, const OutboxStatus& status);
/// The reason why a partition without trouble waits: "waits: broker", "no worker", "waits for p02",
/// "waits: older generation". Empty if it doesn't wait.
std::string obstacle_of(const PartitionStatus& partition, const OutboxStatus& status);

struct LivingWorkers {
  std::int64_t all = 0;
  /// Workers that don't reach their broker.
  std::int64_t cut_off = 0;
  /// Workers whose broker isn't set up for all their partitions.
  std::int64_t misconfigured = 0;
  /// The state of the broker, as one of these sees it.
  std::string trouble = {};
};
LivingWorkers living_workers(const OutboxStatus& status);
constexpr const char* way_to_the_broker =
    "start the broker, or correct nats.url and the credentials; messages wait, and none is lost";

/// The stopped partition that all pending messages wait for, in it or as later generations. Null if
/// some can be published without an operator, or none is pending.
const PartitionStatus* held_up_by(const OutboxStatus& status);

/// The number of unpublished messages: pending (including those in flight and retrying) and
/// republished.
std::int64_t waiting_in(const OutboxStatus& status);
std::int64_t waiting_in(const PartitionStatus& partition);
/// "12,345", or "10,000+" if there are more than were counted.
std::string waiting_in_words(const OutboxStatus& status);
std::string waiting_in_words(const PartitionStatus& partition);
std::string at_least(std::int64_t counted, bool is_lower_bound);

}  // namespace stela::tool
