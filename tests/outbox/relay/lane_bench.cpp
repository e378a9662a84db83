#include "outbox/relay/lane_bench.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

namespace stela::test {
namespace {

std::string numbers(GlobalSequence first, GlobalSequence last, std::int64_t redelivery) {
  std::string text = std::to_string(first.value());
  if (last != first) text += '-' + std::to_string(last.value());
  return redelivery > 0 ? text + 'r' + std::to_string(redelivery) : text;
}

std::string told(std::string_view what, const relay::ParkedMessage& message) {
  return std::string{what} + ' ' + numbers(message.sequence, message.sequence, message.redelivery) +
         " (" + std::string{to_string(message.reason)} + ')';
}

class Batch final : public relay::PendingBatch {};

}  // namespace

EventId id_of(std::int64_t sequence) {
  Uuid::Bytes bytes{};
  bytes.back() = static_cast<std::uint8_t>(sequence);
  bytes[bytes.size() - 2] = static_cast<std::uint8_t>(sequence >> 8);
  return EventId{bytes};
}

FoundMessage ours(std::int64_t sequence, std::uint64_t position) {
  return {.broker_sequence = position,
          .message_id = id_of(sequence).to_string(),
          .is_ours = true,
          .store_id = "the-store",
          .sequence = GlobalSequence{sequence}};
}

// --- the store

relay::PendingMessage& ScriptedStore::let_wait(std::int64_t sequence, std::int64_t stream,
                                               std::string_view payload) {
  const auto event = events_.try_emplace(sequence, StoredEvent{GlobalSequence{sequence},
                                                               stream_,
                                                               StreamVersion{1},
                                                               kind_,
                                                               id_of(sequence),
                                                               {},
                                                               {},
                                                               {},
                                                               {},
                                                               {},
                                                               payload});
  relay::PendingMessage& message = waiting_[{true, sequence}];
  message = {.sequence = GlobalSequence{sequence}, .stream = stream, .event = &event.first->second};
  return message;
}

std::optional<relay::Standing> ScriptedStore::acquire(PartitionId, std::string_view,
                                                      std::chrono::microseconds) {
  if (is_taken_over) return std::nullopt;
  return standing;
}

void ScriptedStore::release(const relay::Lease& lease) {
  epochs.push_back(lease.epoch);
  journal_.write("release");
}

std::unique_ptr<relay::PendingBatch> ScriptedStore::next(PartitionId, const relay::Cursor& cursor,
                                                         const relay::BatchLimit& limit) {
  auto batch = std::make_unique<Batch>();
  std::int64_t bytes = 0;
  for (const auto& [key, message] : waiting_) {
    if (static_cast<int>(batch->messages.size()) == limit.messages) break;
    const bool is_new = message.redelivery > 0 ? message.redelivery > cursor.redelivery
                                               : message.sequence > cursor.sequence;
    if (!is_new) continue;
    bytes += static_cast<std::int64_t>(message.event->payload.size());
    if (!batch->messages.empty() && bytes > limit.bytes) break;
    batch->messages.push_back(message);
    const auto first_parked = first_parked_.find(message.stream);
    batch->messages.back().is_behind_parked =
        first_parked != first_parked_.end() && first_parked->second < message.sequence.value();
  }
  messages_read += static_cast<int>(batch->messages.size());
  return batch;
}

std::vector<EventId> ScriptedStore::ids_of(std::span<const GlobalSequence> sequences) {
  std::vector<EventId> ids;
  for (const GlobalSequence sequence : sequences) {
    ids.push_back(events_.contains(sequence.value()) ? id_of(sequence.value()) : EventId{});
  }
  return ids;
}

bool ScriptedStore::change(const relay::Lease& lease) {
  if (is_full) {
    ++refused;
    throw StoreFull{"the disk is full"};
  }
  if (std::exchange(is_busy, false)) throw StoreBusy{"the store is busy"};
  epochs.push_back(lease.epoch);
  return !is_taken_over;
}

void ScriptedStore::take(GlobalSequence first, GlobalSequence last, std::int64_t redelivery) {
  std::erase_if(waiting_, [&](const auto& entry) {
    const relay::PendingMessage& message = entry.second;
    return message.redelivery == redelivery && message.sequence >= first &&
           message.sequence <= last;
  });
}

bool ScriptedStore::advance(const relay::Lease& lease, const relay::Advance& advance,
                            bool durable) {
  if (!change(lease)) return false;
  for (const relay::PublishedRun& run : advance.published) {
    journal_.write("mark " + numbers(run.first, run.last, run.redelivery));
    take(run.first, run.last, run.redelivery);
    if (run.redelivery > 0) continue;
    standing.published_through = std::max(standing.published_through, run.last);
  }
  for (const relay::ParkedMessage& message : advance.parked) {
    journal_.write(told("park", message));
    const auto stream = waiting_.at({message.redelivery == 0, message.sequence.value()}).stream;
    first_parked_.try_emplace(stream, message.sequence.value());
    parked.push_back(message.sequence.value());
    take(message.sequence, message.sequence, message.redelivery);
  }
  for (const relay::ParkedMessage& message : advance.skipped) {
    journal_.write(told("skip", message));
    take(message.sequence, message.sequence, message.redelivery);
  }
  if (durable) journal_.write("note " + std::to_string(advance.flight_count) + " in flight");
  if (advance.broker_sequence) {
    standing.broker_sequence = *advance.broker_sequence;
    standing.broker_id = advance.broker_id;
  }
  standing.flight_count = advance.flight_count;
  standing.flight_through = advance.flight_through;
  return true;
}

bool ScriptedStore::note(const relay::Lease& lease, const relay::Trouble& trouble) {
  if (!change(lease)) return false;
  last_trouble = trouble;
  if (!trouble.message) return true;
  int& attempts =
      waiting_.at({trouble.message->redelivery == 0, trouble.message->sequence.value()}).attempts;
  journal_.write((trouble.message_attempts < attempts ? "acquit " : "charge ") +
                 std::to_string(trouble.message->sequence.value()));
  attempts = trouble.message_attempts;
  return true;
}

bool ScriptedStore::stop(const relay::Lease& lease, StopReason reason, std::string_view detail) {
  if (!change(lease)) return false;
  stopped_detail = detail;
  journal_.write("stop: " + std::string{to_string(reason)});
  return true;
}

bool ScriptedStore::continue_lost(const relay::Lease& lease) {
  if (!change(lease)) return false;
  journal_.write("continue");
  return true;
}

// --- the broker

void ScriptedPublisher::publish(const OutgoingMessage& message) {
  const std::int64_t sequence = message.event.sequence.value();
  on_publish(sequence);
  std::string line = "send " + std::to_string(sequence);
  Sent& now = sent[sequence];
  now = {.request = message.request,
         .message_id = std::string{message.message_id},
         .previous = message.previous,
         .generation = message.generation};
  if (message.predecessor) {
    now.position = message.predecessor->broker_sequence + 1;
    now.after_id = message.predecessor->message_id;
    line += " after " + std::to_string(message.predecessor->broker_sequence);
  }
  journal_.write(line);
}

void ScriptedPublisher::read_back(std::uint64_t request, PartitionId, std::uint64_t from) {
  question = request;
  journal_.write("read back from " + std::to_string(from));
}

}  // namespace stela::test
