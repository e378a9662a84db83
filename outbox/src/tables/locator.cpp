#include "tables/locator.hpp"

#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace stela::outbox {

using database::Connection;

namespace {

EventId id_of(std::string_view blob) noexcept {
  EventId::Bytes bytes{};
  if (blob.size() == bytes.size()) std::memcpy(bytes.data(), blob.data(), bytes.size());
  return EventId{bytes};
}

/// Copies the event's properties.
template <class Row>
void fill(OutboxMessage& message, const Row& event) {
  message.stream = event.name();
  message.version = StreamVersion{event.version()};
  message.event_id = id_of(event.event_id());
  message.type = event.type();
  message.recorded_at = event.recorded_at();
}

void read_facts(auto& facts, const auto& event) {
  facts.stream = event.stream();
  facts.publishes = event.publishes();
  fill(facts.of, event);
}

void copy_facts(const OutboxMessage& event, OutboxMessage& message) {
  message.stream = event.stream;
  message.version = event.version;
  message.event_id = event.event_id;
  message.type = event.type;
  message.recorded_at = event.recorded_at;
}

/// Messages by event: one event may have several redeliveries.
class MessagesOfEvents {
 public:
  explicit MessagesOfEvents(std::span<OutboxMessage> messages) {
    for (OutboxMessage& message : messages) {
      sequences_ += sequences_.empty() ? '[' : ',';
      sequences_ += std::to_string(message.sequence.value());
      by_sequence_.push_back(&message);
    }
    sequences_ += ']';
    std::sort(by_sequence_.begin(), by_sequence_.end(), IsBefore{});
  }

  /// A JSON array.
  const std::string& sequences() const noexcept { return sequences_; }
  std::span<OutboxMessage*> operator[](std::int64_t sequence) {
    const auto found =
        std::equal_range(by_sequence_.begin(), by_sequence_.end(), sequence, IsBefore{});
    return {found.first, found.second};
  }

 private:
  struct IsBefore {
    static std::int64_t of(const OutboxMessage* message) { return message->sequence.value(); }
    static std::int64_t of(std::int64_t sequence) { return sequence; }
    bool operator()(const auto& a, const auto& b) const { return of(a) < of(b); }
  };

  std::string sequences_;
  std::vector<OutboxMessage*> by_sequence_;
};

}  // namespace

OutboxMessage read_set_aside(const sql::set_aside_row& row, MessageState state) {
  std::optional<FailureClass> failure;
  if (const auto word = row.failure_class()) failure = parse_failure_class(*word);
  return {.sequence = GlobalSequence{row.sequence()},
          .state = state,
          .partition = {static_cast<int>(row.partition())},
          .attempts = static_cast<int>(row.attempts()),
          .reason = parse_set_aside_reason(row.reason()),
          .last_error = std::string{row.error()},
          .failure = failure,
          .since = row.since()};
}

Locator::Locator(Connection& connection, Placement& placement, Timestamp now)
    : connection_{connection},
      placement_{placement},
      now_{now},
      generations_{all_generations(connection)},
      knows_partitioner_{placement.knows_partitioner()} {
  auto settings = connection.rows(sql::settings{});
  is_fenced_ = settings.step() && settings.fence() != to_string(Fence::none);
}

void Locator::expect(std::int64_t first, std::int64_t last) {
  set_apart_.clear();
  auto rows = connection_.rows(sql::set_apart{.first = first, .last = last});
  while (rows.step()) set_apart_.insert(rows.sequence());
  expected_first_ = first;
  expected_last_ = last;
}

bool Locator::may_be_set_apart(std::int64_t sequence) const noexcept {
  const bool is_expected = expected_first_ <= sequence && sequence <= expected_last_;
  return !is_expected || set_apart_.contains(sequence);
}

void Locator::expect_events(std::span<OutboxMessage> messages) {
  facts_.clear();
  if (messages.empty()) return;
  const MessagesOfEvents of{messages};
  auto rows = connection_.rows(sql::event_facts{.sequences = of.sequences()});
  while (rows.step()) read_facts(facts_[rows.sequence()], rows);
}

Locator::EventFacts Locator::facts_of(std::int64_t sequence) {
  const auto known = facts_.find(sequence);
  if (known != facts_.end()) return known->second;
  EventFacts facts;
  auto event = connection_.rows(sql::find_event{.sequence = sequence});
  if (event.step()) read_facts(facts, event);
  return facts;
}

std::optional<Located> Locator::find(GlobalSequence sequence) {
  Located located;
  const EventFacts facts = facts_of(sequence.value());
  located.stream = facts.stream;
  std::optional<OutboxMessage> message;
  if (may_be_set_apart(sequence.value())) {
    message = find_waiting(sequence);
    if (!message) message = find_set_aside(sequence);
    if (!message) message = find_redelivery(sequence, located.stream);
  }
  if (message) {
    located.message = std::move(*message);
  } else {
    const bool before_outbox =
        generations_.empty() || sequence.value() < generations_.front().first_sequence;
    if (!facts.publishes || before_outbox) return std::nullopt;
    located.message.sequence = sequence;
    find_published(located);
  }
  copy_facts(facts.of, located.message);
  return located;
}

std::optional<OutboxMessage> Locator::find_waiting(GlobalSequence sequence) {
  auto row = connection_.rows(sql::find_waiting{.sequence = sequence.value()});
  if (!row.step()) return std::nullopt;
  return read_waiting(row);
}

std::optional<OutboxMessage> Locator::find_set_aside(GlobalSequence sequence) {
  auto parked = connection_.rows(sql::find_parked{.sequence = sequence.value()});
  if (parked.step()) return read_set_aside(parked, MessageState::parked);
  auto discarded = connection_.rows(sql::find_discarded{.sequence = sequence.value()});
  if (discarded.step()) return read_set_aside(discarded, MessageState::discarded);
  return std::nullopt;
}

std::optional<OutboxMessage> Locator::find_redelivery(GlobalSequence sequence,
                                                      std::int64_t stream) {
  auto row = connection_.rows(sql::find_redelivery{.stream = stream, .sequence = sequence.value()});
  if (!row.step()) return std::nullopt;
  const auto attempts = static_cast<int>(row.attempts());
  // A republished event was published before, and still counts as such.
  const MessageState state = row.kind() == "republish" ? MessageState::published
                             : attempts > 0            ? MessageState::retrying
                                                       : MessageState::pending;
  return OutboxMessage{.sequence = sequence,
                       .state = state,
                       .partition = {static_cast<int>(row.partition())},
                       .redelivery = row.redelivery(),
                       .attempts = attempts,
                       .last_error = std::string{row.last_error()}};
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
  Progress& progress = progress_of(message.partition);
  located.is_missing = progress.through < sequence;
  if (may_be_set_apart(sequence)) {
    auto again = connection_.rows(sql::redelivered_batch_of{.sequence = sequence});
    std::optional<std::int64_t> last;
    while (again.step()) {
      if (last && again.redelivery() < *last) continue;
      last = again.redelivery();
      message.since = again.published_at();
      // It may have been another partition, under another generation.
      const bool is_of_this = again.partition() == partition;
      message.broker_from = is_of_this ? static_cast<std::uint64_t>(again.first_broker()) : 0;
      message.broker_to = is_of_this ? static_cast<std::uint64_t>(again.last_broker()) : 0;
    }
    if (last) {
      located.is_missing = false;
      return;
    }
  }
  if (sequence < progress.batch_first || sequence > progress.batch_last) {
    auto batch = connection_.rows(sql::batch_of{.partition = partition, .sequence = sequence});
    if (!batch.step()) return;
    progress.batch_first = batch.first_sequence();
    progress.batch_last = batch.last_sequence();
    progress.batch_at = batch.published_at();
    progress.broker_first = batch.first_broker();
    progress.broker_last = batch.last_broker();
    const std::int64_t all = progress.batch_last - progress.batch_first + 1;
    progress.is_dense =
        batch.count() == all && progress.broker_last - progress.broker_first + 1 == all;
  }
  if (progress.batch_first <= sequence) {
    message.since = progress.batch_at;
    const std::int64_t behind = progress.is_dense ? sequence - progress.batch_first : 0;
    message.broker_from = static_cast<std::uint64_t>(progress.broker_first + behind);
    message.broker_to =
        progress.is_dense ? message.broker_from : static_cast<std::uint64_t>(progress.broker_last);
    located.is_missing = false;
    return;
  }
  if (!is_fenced_) return;
  // With a fence the log's only gaps are messages that were set aside.
  auto oldest = connection_.rows(sql::oldest_batch{.partition = partition});
  oldest.step();
  located.is_missing = oldest.first_sequence() < sequence;
}

OutboxMessage Locator::read_waiting(const sql::waiting_row& row) {
  OutboxMessage message{.sequence = GlobalSequence{row.sequence()},
                        .partition = {static_cast<int>(row.partition())},
                        .redelivery = row.redelivery(),
                        .attempts = static_cast<int>(row.attempts()),
                        .last_error = std::string{row.last_error()}};
  const std::int64_t through = progress_of(message.partition).flight_through;
  if (row.next_attempt_at() > now_) {
    message.state = MessageState::retrying;
    message.next_attempt_at = row.next_attempt_at();
  } else if (row.sequence() <= through) {
    message.state = MessageState::in_flight;
  } else {
    message.state = message.attempts > 0 ? MessageState::retrying : MessageState::pending;
  }
  return message;
}

void Locator::complete(std::span<OutboxMessage> messages) {
  if (messages.empty()) return;
  MessagesOfEvents of{messages};
  auto rows = connection_.rows(sql::event_facts{.sequences = of.sequences()});
  while (rows.step()) {
    for (OutboxMessage* message : of[rows.sequence()]) fill(*message, rows);
  }
}

void Locator::add_types(std::span<OutboxMessage> messages) {
  if (messages.empty()) return;
  MessagesOfEvents of{messages};
  auto rows = connection_.rows(sql::event_types{.sequences = of.sequences()});
  while (rows.step()) {
    for (OutboxMessage* message : of[rows.sequence()]) {
      message->type = rows.type();
      message->recorded_at = rows.recorded_at();
    }
  }
}

Locator::Progress& Locator::progress_of(PartitionId partition) {
  for (auto& [id, progress] : progress_) {
    if (id == partition) return progress;
  }
  auto row = connection_.rows(sql::progress{.partition = partition.number, .now = now_});
  Progress progress;
  if (row.step()) progress = {row.through(), row.flight_through()};
  return progress_.emplace_back(partition, progress).second;
}

}  // namespace stela::outbox
