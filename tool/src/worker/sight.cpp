#include "worker/dashboard.hpp"

#include "cli/text.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

/// Limits for the log of batches, for parked messages, and for a partition's retrying messages.
constexpr int most_batches = 1'000;
constexpr int most_parked = 100;
constexpr int most_retrying = 10;
constexpr std::chrono::seconds longest_unasked{10};

/// Latest first.
std::vector<RecentError> errors_of_messages(OutboxOperations& operations,
                                            const OutboxStatus& status) {
  std::vector<OutboxMessage> messages;
  if (status.parked > 0) {
    messages = operations.list({.state = MessageState::parked, .limit = most_parked});
  }
  int asked = 0;
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.retrying == 0 || ++asked > most_retrying) continue;
    const auto more = operations.list(
        {.state = MessageState::retrying, .partition = partition.id, .limit = most_retrying});
    messages.insert(messages.end(), more.begin(), more.end());
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const auto& a, const auto& b) { return a.since > b.since; });
  std::vector<RecentError> errors;
  for (const OutboxMessage& message : messages) {
    // A message parked after another one didn't fail itself.
    if (message.last_error.empty()) continue;
    errors.push_back({message.since, message.sequence.value(), message.partition.label(),
                      message.stream, message.last_error});
  }
  return errors;
}

bool is_same(const RecentError& known, const RecentError& other) {
  if (known.sequence > 0 && known.sequence == other.sequence) return true;
  return known.message.find(other.message) != std::string::npos ||
         other.message.find(known.message) != std::string::npos;
}

/// Adds the error, or counts it with an equal one of another subject.
void add_once(std::vector<RecentError>& errors, const RecentError& error) {
  const auto known = std::find_if(errors.begin(), errors.end(),
                                  [&](const RecentError& each) { return is_same(each, error); });
  if (known == errors.end()) {
    errors.push_back(error);
  } else if (known->message == error.message &&
             (known->sequence != error.sequence || known->subject != error.subject)) {
    ++known->others;
  }
}

/// Adds the current errors of partitions and workers.
void add_standing(const OutboxStatus& status, const std::string& call,
                  std::vector<RecentError>& errors) {
  for (const PartitionStatus& each : status.partitions) {
    if (!each.stopped && each.attempts == 0) continue;
    const std::string stop =
        "stopped: " + word_of(each.stopped) + ": " + as_run(each.stopped_detail, call);
    add_once(errors,
             {.subject = each.id.label(), .message = each.stopped ? stop : each.last_error});
  }
  for (const WorkerStatus& worker : status.workers) {
    const BrokerStatus broker = worker.broker.value_or(BrokerStatus{});
    const bool is_fine = broker.is_connected() || broker.state == BrokerState::connecting;
    if (!worker.is_alive || is_fine) continue;
    add_once(errors, {.subject = worker.name, .message = "broker " + to_string(broker)});
  }
}

}  // namespace

void Sight::look(OutboxOperations& operations, const OutboxStatus& status, const Totals& own) {
  if (trend_.is_empty()) {
    const auto batches = operations.batches({}, most_batches);
    trend_.add_past(status, batches, std::ssize(batches) < most_batches);
  }
  trend_.add(status, own);
  const std::int64_t failing = status.parked + status.retrying;
  const bool is_old = status.at - errors_at_ >= longest_unasked || status.at < errors_at_;
  if (failing == failing_ && (failing == 0 || !is_old)) return;
  errors_ = errors_of_messages(operations, status);
  failures_ = status.parked > 0 ? operations.groups() : std::vector<FailureGroup>{};
  errors_at_ = status.at;
  failing_ = failing;
}

void Sight::show(View& view) const {
  view.pace = trend_.pace();
  view.throughput = trend_.throughput();
  view.beside.failures = failures_;
  add_standing(view.status, view.program + ' ', view.errors);
  for (const RecentError& error : errors_) add_once(view.errors, error);
  if (!view.own) return;
  for (const RecentError& error : view.own->done.troubles) add_once(view.errors, error);
}

}  // namespace stela::tool
