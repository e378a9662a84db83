#include "postgres/group.hpp"

#include "keys/seal.hpp"
#include "postgres/checksums.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>

namespace stela::postgres {
namespace {

/// The elements of an array of integers, in binary; 0 for NULL.
std::vector<std::int64_t> integers(const Result& row, int column) {
  constexpr std::size_t header = 20;
  std::vector<std::int64_t> all;
  std::string_view bytes = row.bytes(0, column);
  if (row.is_null(0, column) || bytes.size() < header) return all;
  bytes.remove_prefix(header);
  while (bytes.size() >= 4) {
    const std::int64_t size = to_integer(bytes.substr(0, 4));
    bytes.remove_prefix(4);
    const auto length = static_cast<std::size_t>(size < 0 ? 0 : size);
    all.push_back(length > 0 ? to_integer(bytes.substr(0, length)) : 0);
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  return all;
}

void add_text_or_null(Array& array, std::string_view text) {
  if (text.empty()) {
    array.add_null();
  } else {
    array.add_bytes(text);
  }
}

void add_uuid_or_null(Array& array, const Uuid& id) {
  if (id.is_nil()) {
    array.add_null();
  } else {
    array.add_uuid(id);
  }
}

std::int64_t number_of(std::size_t index) noexcept {
  return static_cast<std::int64_t>(index) + 1;
}

}  // namespace

void Group::add(const AppendRequest& request, std::string_view metadata,
                const OpenOutcomes& outcomes, UuidGenerator& ids) {
  // Before all of it is in memory twice.
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
    // The first of several events that are appended together begins their correlation.
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

Parameters Group::guard(std::int64_t order_lock) {
  Parameters parameters;
  parameters.add(order_lock).add(keys_).add(newest_key_);
  return parameters;
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

Group::Call Group::Call::of_group(const Group& group, const std::optional<Own>& own,
                                  const Uuid& epoch, const Uuid& run) {
  Call call{group,
            "SELECT * FROM stela.append_group($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
            "$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, "
            "$30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43)",
            answer_of_group};
  call.add_head(own, epoch, run);
  call.add_names();
  call.add_members();
  call.add_appends();
  call.add_events();
  call.add_keys();
  call.add_own_contexts();
  call.add_tags();
  call.add_conditions();
  for (Array& one : call.arrays_) call.parameters.add(one);
  return call;
}

Group::Call Group::Call::of_plain(const Group& group, const Own& own, const Uuid& epoch,
                                  const Uuid& run) {
  if (group.is_one_event()) {
    Call call{group,
              "SELECT * FROM stela.append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
              "$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)",
              answer_of_one};
    call.add_head(own, epoch, run);
    call.add_one_append();
    call.add_one_tags();
    call.add_one_condition();
    call.parameters.add(own.bell);
    return call;
  }
  Call call{
      group,
      "SELECT * FROM stela.append_group_plain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
      "$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)",
      answer_of_plain};
  call.add_head(own, epoch, run);
  call.add_names();
  call.add_plain_appends();
  call.add_events();
  call.add_keys();
  for (Array& one : call.arrays_) call.parameters.add(one);
  call.parameters.add(own.bell);
  return call;
}

GroupAnswer Group::Call::answer_of_group(const Group&, const Result& row) {
  return {.is_stale = row.integer(0, 0) != 0,
          .before = row.integer(0, 1),
          .after = row.integer(0, 2),
          .outcomes = integers(row, 3),
          .firsts = integers(row, 4),
          .lasts = integers(row, 5),
          .id_checksums = integers(row, 6),
          .conflicts = integers(row, 7),
          .actual = integers(row, 8),
          .versions = integers(row, 9),
          .published = integers(row, 10),
          .kinds = integers(row, 11)};
}

GroupAnswer Group::Call::answer_of_plain(const Group& group, const Result& row) {
  GroupAnswer answer{.is_stale = row.integer(0, 0) != 0,
                     .is_awaited = !row.is_null(0, 7) && row.integer(0, 7) != 0,
                     .before = row.integer(0, 1),
                     .after = row.integer(0, 2),
                     .versions = integers(row, 4),
                     .published = integers(row, 5),
                     .kinds = integers(row, 6)};
  if (answer.is_stale) return answer;
  const std::vector<std::int64_t> bases = integers(row, 3);
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const auto events = static_cast<std::int64_t>(group.appends_[i].request->events.size());
    const bool has_appended = bases[i] >= 0 && events > 0;
    answer.outcomes.push_back(bases[i] < 0 ? GroupAnswer::in_conflict : GroupAnswer::appended);
    answer.firsts.push_back(has_appended ? bases[i] + 1 : 0);
    answer.lasts.push_back(has_appended ? bases[i] + events : 0);
    answer.conflicts.push_back(number_of(i));
  }
  answer.actual = answer.versions;
  return answer;
}

GroupAnswer Group::Call::answer_of_one(const Group& group, const Result& row) {
  enum Column : int { broken_item = 8, broken_at };
  GroupAnswer answer = answer_of_plain(group, row);
  if (answer.is_stale || row.is_null(0, broken_item)) return answer;
  answer.outcomes = {GroupAnswer::in_condition};
  answer.firsts = answer.lasts = {0};
  answer.conflicts = {row.integer(0, broken_item)};
  answer.actual = {row.integer(0, broken_at)};
  return answer;
}

void Group::Call::add_head(const std::optional<Own>& own, const Uuid& epoch, const Uuid& run) {
  if (own) {
    parameters.add(own->order_lock).add_uuid(own->id);
  } else {
    parameters.add_null(type::int8);
    parameters.add_null(type::uuid);
  }
  parameters.add_uuid(epoch).add_uuid(run);
  parameters.add(std::int64_t{group_.now_.time_since_epoch().count()});
}

void Group::Call::add_plain_appends() {
  Array& expected = array(Array::of_int8());
  Array& events = array(Array::of_int4());
  Array& published = array(Array::of_int4());
  Array& causations = array(Array::of_uuid());
  Array& metadata = array(Array::of_text());
  for (const Append& append : group_.appends_) {
    const Member& member = group_.members_[append.member];
    const auto version = append.request->expected.version();
    expected.add(version ? version->value() : -1);
    events.add_int4(static_cast<std::int64_t>(append.request->events.size()));
    published.add_int4(append.last_published);
    add_uuid_or_null(causations, member.request->context.causation_id);
    add_text_or_null(metadata, member.metadata);
  }
}

void Group::Call::add_one_append() {
  const auto add_text = [&](std::string_view text) {
    text.empty() ? parameters.add_null(type::text) : parameters.add(text);
  };
  const Member& member = group_.members_.front();
  const StreamAppend& append = *group_.appends_.front().request;
  const Event& event = group_.events_.front();
  const auto& [category, type_name, version, is_published] = group_.kind_keys_.front();
  parameters.add(append.stream.name()).add(category).add(type_name);
  parameters.add(std::int64_t{version}).add(std::int64_t{is_published});
  const auto expected = append.expected.version();
  parameters.add(expected ? expected->value() : -1);
  const Uuid& causation = member.request->context.causation_id;
  causation.is_nil() ? parameters.add_null(type::uuid) : parameters.add_uuid(causation);
  add_text(member.metadata);
  parameters.add_uuid(event.id);
  add_text(event.correlation);
  parameters.add(event.checksum).add_bytes(event.request->payload);
  event.key ? parameters.add(std::int64_t{*event.key}) : parameters.add_null(type::int8);
}

void Group::Call::add_one_tags() {
  const std::string& text = group_.events_.front().tags;
  Array& hashes = array(Array::of_int8());
  if (text.empty()) {
    parameters.add_null(type::text).add_null(type::int8);
  } else {
    parameters.add(text).add(tags_checksum(text));
    split_tags(text, [&](std::string_view tag) { hashes.add(hash_of_tag(tag)); });
  }
  parameters.add(hashes);
}

void Group::Call::add_one_condition() {
  const Member& member = group_.members_.front();
  const AppendCondition* const condition = member.request->condition;
  Array& types = array(Array::of_text());
  Array& tags = array(Array::of_text());
  Array& hashes = array(Array::of_int8());
  if (condition == nullptr) {
    parameters.add_null(type::int8).add_null(type::int8);
  } else {
    parameters.add(member.required_position()).add(condition->tag_epoch);
    add_query_items(condition->query, types, tags, hashes);
  }
  parameters.add(types).add(tags).add(hashes);
}

void Group::Call::add_own_contexts() {
  Array& owns = array(Array::of_bool());
  Array& causations = array(Array::of_uuid());
  Array& metadata = array(Array::of_text());
  if (group_.own_metadata_.empty()) return;
  for (const Event& event : group_.events_) {
    owns.add_bool(event.has_own_context());
    add_uuid_or_null(causations,
                     event.has_own_context() ? event.request->context->causation_id : Uuid{});
    add_text_or_null(metadata, event.has_own_context() ? event.metadata : std::string_view{});
  }
}

void Group::Call::add_tags() {
  Array& events = array(Array::of_int4());
  Array& tags = array(Array::of_text());
  Array& checksums = array(Array::of_int8());
  Array& hashed = array(Array::of_int4());
  Array& hashes = array(Array::of_int8());
  for (std::size_t i = 0; i < group_.events_.size(); ++i) {
    const std::string& text = group_.events_[i].tags;
    if (text.empty()) continue;
    events.add_int4(number_of(i));
    tags.add_bytes(text);
    checksums.add(tags_checksum(text));
    split_tags(text, [&](std::string_view tag) {
      hashed.add_int4(number_of(i));
      hashes.add(hash_of_tag(tag));
    });
  }
}

void Group::Call::add_conditions() {
  Array& positions = array(Array::of_int8());
  Array& epochs = array(Array::of_int8());
  Array& counts = array(Array::of_int4());
  Array& types = array(Array::of_text());
  Array& tags = array(Array::of_text());
  Array& hashes = array(Array::of_int8());
  for (const Member& member : group_.members_) {
    const AppendCondition* const condition = member.request->condition;
    if (condition == nullptr) {
      positions.add_null();
      epochs.add_null();
      counts.add_int4(0);
      continue;
    }
    positions.add(member.required_position());
    epochs.add(condition->tag_epoch);
    counts.add_int4(static_cast<std::int64_t>(condition->query.items.size()));
    add_query_items(condition->query, types, tags, hashes);
  }
}

void Group::Call::add_names() {
  Array& streams = array(Array::of_text());
  for (const std::string_view name : group_.stream_names_) streams.add_bytes(name);
  Array& categories = array(Array::of_text());
  Array& types = array(Array::of_text());
  Array& versions = array(Array::of_int4());
  Array& publishes = array(Array::of_bool());
  for (const auto& [category, type, version, is_published] : group_.kind_keys_) {
    categories.add_bytes(category);
    types.add_bytes(type);
    versions.add_int4(version);
    publishes.add_bool(is_published);
  }
}

void Group::Call::add_members() {
  Array& appends = array(Array::of_int4());
  Array& ids = array(Array::of_text());
  Array& checksums = array(Array::of_int8());
  Array& causations = array(Array::of_uuid());
  Array& metadata = array(Array::of_text());
  for (std::size_t i = 0; i < group_.members_.size(); ++i) {
    const Member& member = group_.members_[i];
    const AppendRequest& request = *member.request;
    appends.add_int4(static_cast<std::int64_t>(group_.end_of_appends(i) - member.first_append));
    add_text_or_null(ids, request.append_id);
    checksums.add(id_checksum(request.append_id));
    add_uuid_or_null(causations, request.context.causation_id);
    add_text_or_null(metadata, member.metadata);
  }
}

void Group::Call::add_appends() {
  Array& members = array(Array::of_int4());
  Array& streams = array(Array::of_int4());
  Array& expected = array(Array::of_int8());
  Array& events = array(Array::of_int4());
  Array& published = array(Array::of_int4());
  for (const Append& append : group_.appends_) {
    members.add_int4(number_of(append.member));
    streams.add_int4(number_of(append.stream));
    const auto version = append.request->expected.version();
    expected.add(version ? version->value() : -1);
    events.add_int4(static_cast<std::int64_t>(append.request->events.size()));
    published.add_int4(append.last_published);
  }
}

void Group::Call::add_events() {
  Array& appends = array(Array::of_int4());
  Array& ordinals = array(Array::of_int4());
  Array& previous = array(Array::of_int4());
  Array& kinds = array(Array::of_int4());
  Array& ids = array(Array::of_uuid());
  Array& correlations = array(Array::of_text());
  Array& checksums = array(Array::of_int8());
  Array& payloads = array(Array::of_bytes());
  for (std::size_t i = 0; i < group_.events_.size(); ++i) {
    const Event& event = group_.events_[i];
    appends.add_int4(number_of(event.append));
    ordinals.add_int4(number_of(i - group_.appends_[event.append].first_event));
    previous.add_int4(event.previous);
    kinds.add_int4(number_of(event.kind));
    ids.add_uuid(event.id);
    add_text_or_null(correlations, event.correlation);
    checksums.add(event.checksum);
    payloads.add_bytes(event.request->payload);
  }
}

void Group::Call::add_keys() {
  Array& keys = array(Array::of_int8());
  if (group_.data_ == nullptr) return;
  for (const Event& event : group_.events_) {
    if (event.key) {
      keys.add(*event.key);
    } else {
      keys.add_null();
    }
  }
}

}  // namespace stela::postgres
