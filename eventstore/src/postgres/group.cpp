#include "postgres/group.hpp"

#include "keys/seal.hpp"
#include "postgres/checksums.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>

namespace stela::postgres {

using database::or_null;

namespace {

std::int64_t number_of(std::size_t index) noexcept {
  return static_cast<std::int64_t>(index) + 1;
}

}  // namespace

void Group::add(const AppendRequest& request, std::string_view metadata,
                const OpenOutcomes& outcomes, UuidGenerator& ids) {
  // Checked before all payloads are in memory twice.
  std::size_t bytes = 0;
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) bytes += event.payload.size();
  }
  check_size(bytes);
  const AppendCondition* const condition = request.condition;
  const bool has_read_position = condition == nullptr || outcomes.has(condition->outcome.get());
  members_.push_back({&request, metadata, appends_.size(), has_read_position});
  std::string_view correlation = request.context.correlation_id;
  for (const StreamAppend& append : request.streams) add_append(append, correlation, ids);
}

void Group::add_append(const StreamAppend& append, std::string_view& correlation,
                       UuidGenerator& ids) {
  const auto [known, is_new] = streams_.try_emplace(append.stream.name(), stream_names_.size());
  if (is_new) stream_names_.push_back(append.stream.name());
  appends_.push_back({&append, members_.size() - 1, known->second, events_.size(), 0});
  for (const NewEvent& event : append.events) {
    const Uuid id = event.id.is_nil() ? ids.next(now_) : event.id;
    const bool has_own = event.context != nullptr && !event.context->correlation_id.empty();
    add_event(event, has_own ? std::string_view{event.context->correlation_id} : correlation, id);
    // The first of several events appended together starts their correlation.
    if (correlation.empty()) correlation = correlations_.emplace_back(id.to_string());
  }
}

void Group::add_event(const NewEvent& event, std::string_view correlation, const Uuid& id) {
  Append& append = appends_.back();
  const KindKey key{append.request->stream.category(), event.type, event.schema_version,
                    event.publishes};
  const auto [known, is_new] = kinds_.try_emplace(key, kind_keys_.size());
  if (is_new) kind_keys_.push_back(key);
  const EventKind kind{0, std::string{event.type}, event.schema_version, event.publishes, 0};
  const Member& member = members_.back();
  const bool has_own = event.context != nullptr;
  const std::string_view metadata =
      has_own ? own_metadata_.emplace_back(metadata::encode(*event.context)) : member.metadata;
  const Context& context = has_own ? *event.context : member.request->context;
  const std::int64_t checksum = content_checksum({.sequence = {},
                                                  .stream = append.request->stream,
                                                  .version = {},
                                                  .kind = kind,
                                                  .id = id,
                                                  .recorded_at = now_,
                                                  .correlation = correlation,
                                                  .causation_id = context.causation_id,
                                                  .metadata = metadata,
                                                  .published_before = {},
                                                  .payload = event.payload});
  events_.push_back({&event, appends_.size() - 1, known->second, id, correlation, metadata,
                     append.last_published, checksum, std::nullopt,
                     join_tags(event.tags, append.request->stream)});
  if (data_ != nullptr) {
    events_.back().key = data_->key_of(append.request->stream, event, metadata);
  }
  for (const KeyId& sealed_with : event.keys) {
    keys_.add_bytes(keys::text_of(sealed_with.bytes));
    has_keys_ = true;
  }
  newest_key_ = std::max(newest_key_, event.newest_key);
  if (event.publishes) append.last_published = number_of(events_.size() - 1 - append.first_event);
}

std::size_t Group::end_of_appends(std::size_t member) const noexcept {
  return member + 1 < members_.size() ? members_[member + 1].first_append : appends_.size();
}

std::size_t Group::end_of_events(std::size_t append) const noexcept {
  return append + 1 < appends_.size() ? appends_[append + 1].first_event : events_.size();
}

AppendResult Group::result_of(std::size_t number, const GroupAnswer& answer) const {
  const AppendRequest& request = *members_[number].request;
  if (answer.outcomes[number] == GroupAnswer::in_conflict) {
    const auto lost = static_cast<std::size_t>(answer.conflicts[number]) - 1;
    const StreamAppend& append = *appends_[lost].request;
    throw ConcurrencyConflict{append.stream.name(), append.expected.describe(),
                              StreamVersion{answer.actual[number]}};
  }
  if (answer.outcomes[number] == GroupAnswer::in_condition) {
    const GlobalSequence position{answer.actual[number]};
    if (!members_[number].has_read_position) throw ConditionConflict::of_rollback(position);
    if (answer.conflicts[number] < 0) {
      throw ConditionConflict::of_missing_position(*request.condition->after, position);
    }
    if (answer.conflicts[number] == 0) throw ConditionConflict::of_tag_epoch(position);
    throw ConditionConflict{position, static_cast<std::size_t>(answer.conflicts[number] - 1)};
  }
  AppendResult result{.first = GlobalSequence{answer.firsts[number]},
                      .last = GlobalSequence{answer.lasts[number]}};
  result.repeated = answer.outcomes[number] == GroupAnswer::repeated;
  if (result.repeated) {
    if (answer.id_checksums[number] !=
        id_checksum(request.append_id, result.first.value(), result.last.value())) {
      throw CorruptEvent{"append id '" + std::string{request.append_id} +
                         "' doesn't match its checksum; restore it from a backup"};
    }
    return result;
  }
  for (std::size_t i = members_[number].first_append; i < end_of_appends(number); ++i) {
    const auto events = static_cast<std::int64_t>(appends_[i].request->events.size());
    result.versions.emplace_back(answer.versions[i] + events);
  }
  return result;
}

void Group::events_of(std::size_t number, const GroupAnswer& answer, KindTable& kinds,
                      FunctionRef<void(const StoredEvent&)> use) const {
  if (answer.outcomes[number] != GroupAnswer::appended) return;
  const Member& member = members_[number];
  std::int64_t sequence = answer.firsts[number];
  for (std::size_t i = member.first_append; i < end_of_appends(number); ++i) {
    std::int64_t version = answer.versions[i];
    for (std::size_t j = appends_[i].first_event; j < end_of_events(i); ++j) {
      const Event& event = events_[j];
      const NewEvent& added = *event.request;
      const EventKind& kind =
          kinds.find({.number = static_cast<std::int32_t>(answer.kinds[event.kind]),
                      .type = added.type,
                      .version = added.schema_version,
                      .publishes = added.publishes});
      const std::int64_t before =
          event.previous > 0 ? answer.versions[i] + event.previous : answer.published[i];
      use({.sequence = GlobalSequence{sequence++},
           .stream = appends_[i].request->stream,
           .version = StreamVersion{++version},
           .kind = kind,
           .id = event.id,
           .recorded_at = now_,
           .correlation = event.correlation,
           .causation_id = event.has_own_context() ? added.context->causation_id
                                                   : member.request->context.causation_id,
           .metadata = event.metadata,
           .published_before = StreamVersion{before},
           .payload = added.payload});
    }
  }
}

std::vector<Uuid> Group::ids_of(std::size_t number) const {
  std::vector<Uuid> ids;
  for (const Event& event : events_) {
    if (appends_[event.append].member == number) ids.push_back(event.id);
  }
  return ids;
}

bool Group::is_plain() const noexcept {
  const auto has_no_id = [](const Member& member) { return member.request->append_id.empty(); };
  const auto has_no_condition = [](const Member& member) {
    return member.request->condition == nullptr;
  };
  if (!own_metadata_.empty() || !std::all_of(members_.begin(), members_.end(), has_no_id)) {
    return false;
  }
  return is_one_event() ||
         (members_.size() == appends_.size() && appends_.size() == stream_names_.size() &&
          std::all_of(members_.begin(), members_.end(), has_no_condition) &&
          std::all_of(events_.begin(), events_.end(),
                      [](const Event& event) { return event.tags.empty(); }));
}

void Group::add_names(Array& streams, sql::kind_rows& kinds) const {
  for (const std::string_view name : stream_names_) streams.add_bytes(name);
  for (const auto& [category, type, version, publishes] : kind_keys_) {
    kinds.add({.category = category, .type = type, .version = version, .publishes = publishes});
  }
}

void Group::add_events(sql::group_event_rows& events, Array& keys) const {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    events.add({.append = number_of(event.append),
                .ordinal = number_of(i - appends_[event.append].first_event),
                .previous = event.previous,
                .kind = number_of(event.kind),
                .id = event.id,
                .correlation = or_null(event.correlation),
                .checksum = event.checksum,
                .payload = event.request->payload});
    if (data_ == nullptr) continue;
    event.key ? keys.add(*event.key) : keys.add_null();
  }
}

void Group::add_members(sql::member_rows& members) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const AppendRequest& request = *member.request;
    members.add({.appends = static_cast<std::int64_t>(end_of_appends(i) - member.first_append),
                 .append_id = or_null(request.append_id),
                 .id_checksum = id_checksum(request.append_id),
                 .causation = or_null(request.context.causation_id),
                 .metadata = or_null(member.metadata)});
  }
}

void Group::add_appends(sql::stream_append_rows& appends) const {
  for (const Append& append : appends_) {
    appends.add({.member = number_of(append.member),
                 .stream = number_of(append.stream),
                 .expected = append.expected(),
                 .events = static_cast<std::int64_t>(append.request->events.size()),
                 .published = append.last_published});
  }
}

void Group::add_appends(sql::plain_append_rows& appends) const {
  for (const Append& append : appends_) {
    const Member& member = members_[append.member];
    appends.add({.expected = append.expected(),
                 .events = static_cast<std::int64_t>(append.request->events.size()),
                 .published = append.last_published,
                 .causation = or_null(member.request->context.causation_id),
                 .metadata = or_null(member.metadata)});
  }
}

void Group::add_contexts(sql::own_context_rows& contexts) const {
  if (own_metadata_.empty()) return;
  for (const Event& event : events_) {
    const bool is_own = event.has_own_context();
    contexts.add({.is_own = is_own,
                  .causation = or_null(is_own ? event.request->context->causation_id : Uuid{}),
                  .metadata = or_null(is_own ? event.metadata : std::string_view{})});
  }
}

void Group::add_tags(sql::event_tags_rows& tags, sql::tag_hash_rows& hashes) const {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const std::string& text = events_[i].tags;
    if (text.empty()) continue;
    tags.add({.event = number_of(i), .tags = text, .checksum = tags_checksum(text)});
    split_tags(text, [&](std::string_view tag) {
      hashes.add({.event = number_of(i), .tag = hash_of_tag(tag)});
    });
  }
}

void Group::add_conditions(sql::condition_rows& conditions, sql::item_rows& items) const {
  for (const Member& member : members_) {
    const AppendCondition* const condition = member.request->condition;
    if (condition == nullptr) {
      conditions.add({.after = {}, .epoch = {}, .items = 0});
      continue;
    }
    conditions.add({.after = member.required_position(),
                    .epoch = condition->tag_epoch,
                    .items = static_cast<std::int64_t>(condition->query.items.size())});
    add_query_items(condition->query, items);
  }
}

Group::Call Group::Call::of_group(const Group& group, const std::optional<Own>& own,
                                  const Uuid& epoch, const Uuid& run) {
  struct Rows {
    Array streams = Array::of_text();
    sql::kind_rows kinds;
    sql::member_rows members;
    sql::stream_append_rows appends;
    sql::group_event_rows events;
    Array keys = Array::of_int8();
    sql::own_context_rows contexts;
    sql::event_tags_rows tags;
    sql::tag_hash_rows hashes;
    sql::condition_rows conditions;
    sql::item_rows items;
  };
  const auto rows = std::make_shared<Rows>();
  group.add_names(rows->streams, rows->kinds);
  group.add_members(rows->members);
  group.add_appends(rows->appends);
  group.add_events(rows->events, rows->keys);
  group.add_contexts(rows->contexts);
  group.add_tags(rows->tags, rows->hashes);
  group.add_conditions(rows->conditions, rows->items);
  return {group,
          sql::append_group{.order_lock = own ? std::optional{own->order_lock} : std::nullopt,
                            .group = own ? std::optional{own->id} : std::nullopt,
                            .epoch = epoch,
                            .run = run,
                            .now = group.now_,
                            .streams = rows->streams,
                            .kinds = rows->kinds,
                            .members = rows->members,
                            .appends = rows->appends,
                            .events = rows->events,
                            .keys = rows->keys,
                            .contexts = rows->contexts,
                            .tags = rows->tags,
                            .hashes = rows->hashes,
                            .conditions = rows->conditions,
                            .items = rows->items},
          rows};
}

Group::Call Group::Call::of_plain(const Group& group, const Own& own, const Uuid& epoch,
                                  const Uuid& run) {
  if (group.is_one_event()) return of_one(group, own, epoch, run);
  struct Rows {
    Array streams = Array::of_text();
    sql::kind_rows kinds;
    sql::plain_append_rows appends;
    sql::group_event_rows events;
    Array keys = Array::of_int8();
  };
  const auto rows = std::make_shared<Rows>();
  group.add_names(rows->streams, rows->kinds);
  group.add_appends(rows->appends);
  group.add_events(rows->events, rows->keys);
  return {group,
          sql::append_group_plain{.order_lock = own.order_lock,
                                  .group = own.id,
                                  .epoch = epoch,
                                  .run = run,
                                  .now = group.now_,
                                  .streams = rows->streams,
                                  .kinds = rows->kinds,
                                  .appends = rows->appends,
                                  .events = rows->events,
                                  .keys = rows->keys,
                                  .bell = own.bell},
          rows};
}

Group::Call Group::Call::of_one(const Group& group, const Own& own, const Uuid& epoch,
                                const Uuid& run) {
  struct Rows {
    Array hashes = Array::of_int8();
    sql::item_rows items;
  };
  const auto rows = std::make_shared<Rows>();
  const Member& member = group.members_.front();
  const Append& append = group.appends_.front();
  const Event& event = group.events_.front();
  const auto& [category, type, version, publishes] = group.kind_keys_.front();
  const AppendCondition* const condition = member.request->condition;
  const bool has_tags = !event.tags.empty();
  split_tags(event.tags, [&](std::string_view tag) { rows->hashes.add(hash_of_tag(tag)); });
  if (condition != nullptr) add_query_items(condition->query, rows->items);
  return {
      group,
      sql::append_one{
          .order_lock = own.order_lock,
          .group = own.id,
          .epoch = epoch,
          .run = run,
          .now = group.now_,
          .stream = append.request->stream.name(),
          .category = category,
          .type = type,
          .version = version,
          .publishes = publishes,
          .expected = append.expected(),
          .causation = or_null(member.request->context.causation_id),
          .metadata = or_null(member.metadata),
          .id = event.id,
          .correlation = or_null(event.correlation),
          .checksum = event.checksum,
          .payload = event.request->payload,
          .key = event.key,
          .tags = or_null(event.tags),
          .tags_checksum = has_tags ? std::optional{tags_checksum(event.tags)} : std::nullopt,
          .hashes = rows->hashes,
          .condition_after = condition ? std::optional{member.required_position()} : std::nullopt,
          .condition_epoch = condition ? std::optional{condition->tag_epoch} : std::nullopt,
          .items = rows->items,
          .bell = own.bell},
      rows};
}

GroupAnswer Group::answer_of(const sql::append_group::Row& row) const {
  return {.is_stale = row.is_stale(),
          .before = row.before(),
          .after = row.after(),
          .outcomes = row.outcomes(),
          .firsts = row.firsts(),
          .lasts = row.lasts(),
          .id_checksums = row.id_checksums(),
          .conflicts = row.conflicts(),
          .actual = row.actual(),
          .versions = row.versions(),
          .published = row.published(),
          .kinds = row.kind_numbers()};
}

template <class Row>
GroupAnswer Group::plain_answer_of(const Row& row) const {
  GroupAnswer answer{.is_stale = row.is_stale(),
                     .is_awaited = row.is_awaited(),
                     .before = row.before(),
                     .after = row.after(),
                     .versions = row.versions(),
                     .published = row.published(),
                     .kinds = row.kind_numbers()};
  if (answer.is_stale) return answer;
  const std::vector<std::int64_t> bases = row.bases();
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const auto events = static_cast<std::int64_t>(appends_[i].request->events.size());
    const bool has_appended = bases[i] >= 0 && events > 0;
    answer.outcomes.push_back(bases[i] < 0 ? GroupAnswer::in_conflict : GroupAnswer::appended);
    answer.firsts.push_back(has_appended ? bases[i] + 1 : 0);
    answer.lasts.push_back(has_appended ? bases[i] + events : 0);
    answer.conflicts.push_back(number_of(i));
  }
  answer.actual = answer.versions;
  return answer;
}

GroupAnswer Group::answer_of(const sql::append_group_plain::Row& row) const {
  return plain_answer_of(row);
}

GroupAnswer Group::answer_of(const sql::append_one::Row& row) const {
  GroupAnswer answer = plain_answer_of(row);
  if (answer.is_stale || !row.broken_item()) return answer;
  answer.outcomes = {GroupAnswer::in_condition};
  answer.firsts = answer.lasts = {0};
  answer.conflicts = {*row.broken_item()};
  answer.actual = {row.broken_at()};
  return answer;
}

}  // namespace stela::postgres
