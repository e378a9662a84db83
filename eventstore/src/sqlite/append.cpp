// The writer judges an append by its id, condition and versions, and inserts its rows. On
// PostgreSQL the server does both: postgres/writer.hpp.
#include "database/checksum.hpp"
#include "forgotten_keys.hpp"
#include "sqlite/append_id.hpp"
#include "sqlite/condition.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite/writer.hpp"
#include "sqlite_sql/append_ids.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace stela::sqlite {
namespace {

AppendedStreams appended_streams(Connection& connection, const AppendResult& append) {
  AppendedStreams streams;
  auto rows = connection.rows(
      sql::appended_versions{.first = append.first.value(), .last = append.last.value()});
  while (rows.step()) {
    AppendedEvents& events = streams[std::string{rows.name()}];
    ++events.count;
    events.version = std::max(events.version, rows.version());
  }
  return streams;
}

}  // namespace

AppendResult Writer::append_now(const AppendRequest& request, WriteWork& work) {
  const Appending appending{*this};
  participants_.check();
  AppendResult result;
  if (!request.append_id.empty() && repeat(request, result)) return result;
  if (request.condition != nullptr) check_condition(*request.condition, work);
  if (request.streams.size() > 1) check_versions(request.streams);
  check_keys(*connection_, request);

  appended_.clear();
  planned_.clear();
  work.correlation = request.context.correlation_id;
  const std::int64_t before = last_sequence_;
  for (const StreamAppend& append : request.streams) {
    result.versions.push_back(append_stream(append, request, work));
  }
  if (last_sequence_ > before) {
    result.first = GlobalSequence{before + 1};
    result.last = GlobalSequence{last_sequence_};
  }
  for (const PlannedRow& planned : planned_) planned.participant->insert(*connection_, planned.row);
  if (!appended_.empty()) {
    OpenTransaction transaction{*this, work};
    for (TransactionParticipant* const participant : participants_.of_users()) {
      participant->on_append(transaction, appended_);
      check_transaction();
    }
    if (work.wants_events) keep_events(work);
  }
  if (!request.append_id.empty()) {
    const std::int64_t first = result.first.value();
    const std::int64_t last = result.last.value();
    connection_->run(
        sql::insert_append_id{.append_id = request.append_id,
                              .first_sequence = first,
                              .last_sequence = last,
                              .checksum = database::checksum_of({first, last}, {request.append_id}),
                              .used_at = now_});
  }
  return result;
}

void Writer::check_condition(const AppendCondition& condition, const WriteWork& work) {
  const GlobalSequence head{last_sequence_};
  if (!work.outcomes.has(condition.outcome.get())) throw ConditionConflict::of_rollback(head);
  const GlobalSequence after = condition.after.value_or(GlobalSequence{0});
  if (after > head) throw ConditionConflict::of_missing_position(after, head);
  if (condition.tag_epoch != 0 && condition.tag_epoch != tags_.epoch(*connection_)) {
    throw ConditionConflict::of_tag_epoch(head);
  }
  check_holds(condition, *connection_, kinds_);
}

/// Called before any insert, so that a conflict costs no rows.
void Writer::check_versions(std::span<const StreamAppend> streams) {
  // A stream may appear several times.
  std::unordered_map<const StreamHead*, std::int64_t> versions;
  for (const StreamAppend& append : streams) {
    const StreamHead& head = head_of(append.stream).second;
    std::int64_t& version = versions.try_emplace(&head, head.version).first->second;
    if (!append.expected.allows(StreamVersion{version})) {
      throw ConcurrencyConflict{append.stream.name(), append.expected.describe(),
                                StreamVersion{version}};
    }
    version += static_cast<std::int64_t>(append.events.size());
  }
}

std::optional<AppendResult> find_append_id(Connection& connection, std::string_view append_id) {
  auto found = connection.rows(sql::find_append_id{.append_id = append_id});
  if (!found.step()) return std::nullopt;
  if (found.checksum() !=
      database::checksum_of({found.first_sequence(), found.last_sequence()}, {append_id})) {
    throw CorruptEvent{"append id '" + std::string{append_id} +
                       "' doesn't match its checksum; restore it from a backup"};
  }
  return AppendResult{.first = GlobalSequence{found.first_sequence()},
                      .last = GlobalSequence{found.last_sequence()},
                      .repeated = true};
}

bool Writer::repeat(const AppendRequest& request, AppendResult& result) {
  const auto found = find_append_id(*connection_, request.append_id);
  if (!found) return false;
  result = *found;
  repeat_append(request, appended_streams(*connection_, result), result);
  return true;
}

StreamHeads::Entry& Writer::head_of(const StreamId& stream) {
  if (StreamHeads::Entry* const known = heads_.find(stream.name())) return *known;
  return heads_.add(stream.name(), find_head(*connection_, kinds_, stream));
}

StreamVersion Writer::append_stream(const StreamAppend& append, const AppendRequest& request,
                                    WriteWork& work) {
  StreamHeads::Entry& head = head_of(append.stream);
  if (!append.expected.allows(StreamVersion{head.second.version})) {
    throw ConcurrencyConflict{append.stream.name(), append.expected.describe(),
                              StreamVersion{head.second.version}};
  }
  const auto count = static_cast<std::int64_t>(append.events.size());
  if (count == 0) return StreamVersion{head.second.version};
  const std::int64_t last_room = std::numeric_limits<std::int64_t>::max() - count;
  if (head.second.version > last_room || last_sequence_ > last_room) {
    throw CorruptEvent{(head.second.version > last_room
                            ? "the version of '" + append.stream.name() + '\''
                            : std::string{"the sequence"}) +
                       " can't grow any further: its last event is damaged"};
  }
  heads_.touch(head);
  if (head.second.stream == 0) {
    head.second.stream = insert_stream(*connection_, append.stream);
  }
  for (const NewEvent& event : append.events) {
    insert_event(append, event, head.second, request, work);
  }
  return StreamVersion{head.second.version};
}

void Writer::insert_event(const StreamAppend& append, const NewEvent& event, StreamHead& head,
                          const AppendRequest& request, WriteWork& work) {
  const EventKind& kind = kinds_.intern(
      {append.stream.category(), event.type, event.schema_version, event.publishes}, *connection_);
  const bool has_own_context = event.context != nullptr;
  const Context& context = has_own_context ? *event.context : request.context;
  const bool has_own_correlation = has_own_context && !context.correlation_id.empty();
  if (has_own_context) work.own_metadata.push_back(metadata::encode(context));
  const StoredEvent stored{.sequence = GlobalSequence{last_sequence_ + 1},
                           .stream = append.stream,
                           .version = StreamVersion{head.version + 1},
                           .kind = kind,
                           .id = event.id.is_nil() ? ids_.next(now_) : event.id,
                           .recorded_at = now_,
                           .correlation = has_own_correlation
                                              ? std::string_view{context.correlation_id}
                                              : std::string_view{work.correlation},
                           .causation_id = context.causation_id,
                           .metadata = has_own_context ? work.own_metadata.back() : work.metadata,
                           .published_before = StreamVersion{head.published},
                           .payload = event.payload};
  tags_.check(*connection_, kind.number, event, append.stream, stored.sequence.value());
  insert_row(*connection_, head.stream, stored);
  if (!event.tags.empty()) {
    const std::string tags = join_tags(event.tags, append.stream);
    if (!tags.empty()) insert_tags(*connection_, {last_sequence_ + 1, kind.number}, tags);
  }
  kind_blocks_.note(*connection_, static_cast<std::size_t>(kind.number), stored.sequence.value());

  if (participants_.has_user_code() || work.wants_events) appended_.push_back(stored);
  // The first of several appended events begins their correlation.
  if (work.correlation.empty()) work.correlation = stored.id.to_string();
  last_sequence_ = stored.sequence.value();
  plan_rows(append, event, head.stream, stored.metadata);
  head.version = stored.version.value();
  if (event.publishes) head.published = head.version;
}

void Writer::plan_rows(const StreamAppend& append, const NewEvent& event, std::int64_t stream,
                       std::string_view metadata) {
  for (database::DataParticipant* const participant : participants_.of_data()) {
    const auto key = participant->key_of(append.stream, event, metadata);
    if (key) planned_.push_back({participant, {*key, last_sequence_, stream}});
  }
}

void Writer::keep_events(WriteWork& work) {
  if (work.request != nullptr) {
    // These events point into the request and its work, whose caller is waiting.
    for (const StoredEvent& event : appended_) work.events.push_back(event);
    return;
  }
  for (const StoredEvent& event : appended_) work.keep(event);
}

}  // namespace stela::sqlite
