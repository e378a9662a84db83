#include "sqlite/locator.hpp"

#include "outbox_sql.hpp"
#include "outbox_sql/partitions.hpp"

#include <cstring>
#include <utility>

namespace stela::outbox {

using sqlite::Connection;
using sqlite::Query;

namespace {

Timestamp time_of(std::int64_t value) noexcept {
  return Timestamp{std::chrono::microseconds{value}};
}

EventId id_of(std::string_view blob) noexcept {
  EventId::Bytes bytes{};
  if (blob.size() == bytes.size()) std::memcpy(bytes.data(), blob.data(), bytes.size());
  return EventId{bytes};
}

}  // namespace

Locator::Locator(Connection& connection, Placement& placement, Timestamp now)
    : connection_{connection},
      placement_{placement},
      now_{now},
      generations_{all_generations(connection)},
      knows_partitioner_{placement.knows_partitioner()} {
  auto settings = connection.rows(sql::settings{});
  is_fenced_ = settings.step() && settings.fence() != to_string(Fence::none);
}

std::optional<Located> Locator::find(GlobalSequence sequence) {
  Located located;
  bool publishes = false;
  {
    Query event = connection_.query(sql::find_event);
    if (event.bind(1, sequence.value()).step()) {
      located.stream = event.integer(0);
      publishes = event.integer(5) != 0;
    }
  }
  auto message = find_waiting(sequence);
  if (!message) message = find_set_aside(sequence);
  if (!message) message = find_redelivery(sequence, located.stream);
  if (message) {
    located.message = std::move(*message);
  } else {
    const bool before_outbox =
        generations_.empty() || sequence.value() < generations_.front().first_sequence;
    if (!publishes || before_outbox) return std::nullopt;
    located.message.sequence = sequence;
    find_published(located);
  }
  complete(located.message);
  return located;
}

std::optional<OutboxMessage> Locator::find_waiting(GlobalSequence sequence) {
  Query row = connection_.query(sql::find_waiting);
  if (!row.bind(1, sequence.value()).step()) return std::nullopt;
  return waiting(row);
}

std::optional<OutboxMessage> Locator::find_set_aside(GlobalSequence sequence) {
  for (const auto& [query, state] : {std::pair{sql::find_parked, MessageState::parked},
                                     std::pair{sql::find_discarded, MessageState::discarded}}) {
    Query row = connection_.query(query);
    if (!row.bind(1, sequence.value()).step()) continue;
    return OutboxMessage{.sequence = sequence,
                         .state = state,
                         .partition = {static_cast<int>(row.integer(1))},
                         .attempts = static_cast<int>(row.integer(3)),
                         .reason = std::string{row.text(4)},
                         .last_error = std::string{row.text(5)},
                         .since = time_of(row.integer(2))};
  }
  return std::nullopt;
}

std::optional<OutboxMessage> Locator::find_redelivery(GlobalSequence sequence,
                                                      std::int64_t stream) {
  Query row = connection_.query(sql::find_redelivery);
  row.bind(1, stream).bind(2, sequence.value());
  if (row.step()) {
    const auto attempts = static_cast<int>(row.integer(3));
    // What is republished was published before, and still is.
    const MessageState state = row.text(1) == "republish" ? MessageState::published
                               : attempts > 0             ? MessageState::retrying
                                                          : MessageState::pending;
    return OutboxMessage{.sequence = sequence,
                         .state = state,
                         .partition = {static_cast<int>(row.integer(2))},
                         .redelivery = row.integer(0),
                         .attempts = attempts,
                         .last_error = std::string{row.text(4)}};
  }
  return std::nullopt;
}

void Locator::find_published(Located& located) {
  OutboxMessage& message = located.message;
  message.state = MessageState::published;
  if (!knows_partitioner_) return;
  const std::int64_t sequence = message.sequence.value();
  Generation generation;
  for (const Generation& each : generations_) {
    if (each.first_sequence <= sequence) generation = each;
  }
  message.partition = placement_.find(message.sequence, located.stream, generation.partition_count);
  const std::int64_t partition = message.partition.number;
  located.is_missing = progress_of(message.partition).through < sequence;
  {
    Query again = connection_.query(sql::redelivered_batch_of);
    if (again.bind(1, sequence).step() && !again.is_null(0)) {
      message.since = time_of(again.integer(0));
      located.is_missing = false;
    }
  }
  Query batch = connection_.query(sql::batch_of);
  if (!batch.bind(1, partition).bind(2, sequence).step()) return;
  if (batch.integer(0) <= sequence) {
    message.since = time_of(batch.integer(1));
    located.is_missing = false;
    return;
  }
  if (message.since || !is_fenced_) return;
  // With a fence the log has no gaps but for what was set aside.
  Query oldest = connection_.query(sql::oldest_batch);
  oldest.bind(1, partition).step();
  located.is_missing = oldest.integer(0) < sequence;
}

OutboxMessage Locator::waiting(const Query& row) {
  OutboxMessage message{.sequence = GlobalSequence{row.integer(0)},
                        .partition = {static_cast<int>(row.integer(2))},
                        .attempts = static_cast<int>(row.integer(3)),
                        .last_error = std::string{row.text(5)}};
  const std::int64_t now = now_.time_since_epoch().count();
  const std::int64_t through = progress_of(message.partition).flight_through;
  if (row.integer(4) > now) {
    message.state = MessageState::retrying;
    message.next_attempt_at = time_of(row.integer(4));
  } else if (row.integer(0) <= through || row.integer(6) > now) {
    message.state = MessageState::in_flight;
  } else {
    message.state = message.attempts > 0 ? MessageState::retrying : MessageState::pending;
  }
  return message;
}

void Locator::complete(OutboxMessage& message) {
  Query event = connection_.query(sql::find_event);
  if (!event.bind(1, message.sequence.value()).step()) return;
  message.stream = event.text(1);
  message.version = StreamVersion{event.integer(2)};
  message.event_id = id_of(event.blob(3));
  message.type = event.text(4);
  message.recorded_at = time_of(event.integer(6));
}

const Locator::Progress& Locator::progress_of(PartitionId partition) {
  for (const auto& [id, progress] : progress_) {
    if (id == partition) return progress;
  }
  Query row = connection_.query(sql::progress);
  row.bind(1, std::int64_t{partition.number}).bind(2, now_.time_since_epoch().count());
  Progress progress;
  if (row.step()) progress = {row.integer(0), row.integer(1)};
  return progress_.emplace_back(partition, progress).second;
}

}  // namespace stela::outbox
