#include "memory_core.hpp"

#include <stela/framework/detail/metadata.hpp>

#include <algorithm>
#include <limits>

namespace stela::testing {

std::vector<std::shared_ptr<const Row>> MemoryStore::Core::find(const StreamId& stream,
                                                                const StreamQuery& query,
                                                                std::size_t count) {
  const std::lock_guard lock{mutex};
  std::vector<std::shared_ptr<const Row>> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = rows[i];
    if (row->stream == stream && row->version >= query.from && row->version <= query.to &&
        row->sequence <= query.up_to) {
      found.push_back(row);
    }
  }
  return found;
}

std::vector<std::shared_ptr<const Row>> MemoryStore::Core::find(const Query& query,
                                                                const QueryRange& range,
                                                                std::size_t count) {
  const std::lock_guard lock{mutex};
  std::vector<std::shared_ptr<const Row>> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = rows[i];
    if (row->sequence <= range.after || row->sequence > range.up_to) continue;
    const StoredEvent event = row->view();
    if (std::any_of(query.items.begin(), query.items.end(),
                    [&](const QueryItem& item) { return matches(item, event); })) {
      found.push_back(row);
    }
  }
  return found;
}

std::optional<AppendResult> MemoryStore::Core::find_append(std::string_view append_id) {
  const std::lock_guard lock{mutex};
  const auto found = state.append_ids.find(append_id);
  if (found == state.append_ids.end()) return std::nullopt;
  return found->second.result;
}

bool MemoryStore::Core::check_needs(std::span<const TagNeed> needs, std::size_t count) {
  bool has_noted = false;
  for (const TagNeed& need : needs) has_noted = note_tags(need.type, need.declared) || has_noted;
  const std::lock_guard lock{mutex};
  for (const TagNeed& need : needs) {
    const TagFact* const fact = state.tag_facts.find(need.type, need.category);
    const std::int64_t since =
        fact != nullptr ? fact->since : std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < count; ++i) {
      const Row& row = *rows[i];
      const bool has_its_stream_only =
          row.stream.category() == need.category && !need.is_of_several();
      if (row.kind.type == need.type && !has_its_stream_only && row.sequence.value() < since) {
        throw_tags_missing(need);
      }
    }
  }
  return has_noted;
}

void MemoryStore::Core::check_condition(const AppendCondition& condition,
                                        const OpenTransaction& transaction) const {
  if (!transaction.has(condition.outcome.get())) {
    throw ConditionConflict::of_rollback(last_sequence());
  }
  const GlobalSequence after = condition.after.value_or(GlobalSequence{0});
  if (after > last_sequence()) {
    throw ConditionConflict::of_missing_position(after, last_sequence());
  }
  for (auto at = static_cast<std::size_t>(std::max<std::int64_t>(after.value(), 0));
       at < rows.size(); ++at) {
    const StoredEvent event = rows[at]->view();
    const auto& items = condition.query.items;
    const auto item = std::find_if(items.begin(), items.end(),
                                   [&](const QueryItem& one) { return matches(one, event); });
    if (item == items.end()) continue;
    throw ConditionConflict{event.sequence, static_cast<std::size_t>(item - items.begin())};
  }
}

void MemoryStore::Core::check_versions(const AppendRequest& request) {
  std::map<StreamId, StreamVersion> after;
  for (const StreamAppend& append : request.streams) {
    const auto [head, is_new] = after.try_emplace(append.stream, StreamVersion{});
    if (is_new) head->second = state.heads[append.stream].version;
    if (!append.expected.allows(head->second)) {
      throw ConcurrencyConflict{append.stream.name(), append.expected.describe(), head->second};
    }
    head->second =
        StreamVersion{head->second.value() + static_cast<std::int64_t>(append.events.size())};
  }
}

bool MemoryStore::Core::note_tags(std::string_view type, std::span<const TagDeclaration> declared) {
  const std::lock_guard lock{mutex};
  std::vector<TagFact> additions = state.tag_facts.additions(type, declared);
  for (TagFact& fact : additions) {
    const bool is_known = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto& row) { return row->kind.type == type; });
    if (fact.since == TagFacts::from_now_on) {
      fact.since = is_known ? last_sequence().value() + 1 : 0;
    }
    state.tag_facts.add(std::move(fact));
  }
  return !additions.empty();
}

void MemoryStore::Core::go_back_to(std::size_t count, MemoryState saved) {
  const std::lock_guard lock{mutex};
  rows.resize(count);
  state = std::move(saved);
  for (TransactionParticipant* const participant : participants) participant->forget();
}

void MemoryStore::Core::check_participants() const {
  for (const auto& [name, detail] : state.required) {
    const auto attached =
        std::find_if(participants.begin(), participants.end(),
                     [&name = name, &detail = detail](const auto* participant) {
                       return participant->name() == name && participant->accepts(detail);
                     });
    if (attached == participants.end()) {
      throw ParticipantMissing{"this store requires '" + name + "' (" + detail +
                               ") to take part in every append; nothing was written"};
    }
  }
}

bool MemoryStore::Core::repeat(const AppendRequest& request, AppendResult& result) const {
  const auto before = state.append_ids.find(request.append_id);
  if (request.append_id.empty() || before == state.append_ids.end()) return false;
  result = before->second.result;
  repeat_append(request, before->second.streams, result);
  return true;
}

AppendResult MemoryStore::Core::append(const AppendRequest& request, OpenTransaction& transaction) {
  check_participants();
  AppendResult result;
  if (repeat(request, result)) return result;
  if (request.condition != nullptr) check_condition(*request.condition, transaction);
  check_versions(request);

  const std::string metadata = metadata::encode(request.context);
  std::string correlation = request.context.correlation_id;
  const std::size_t before = rows.size();
  AppendedStreams appended;
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) {
      append_event(append, event, request, metadata, correlation);
    }
    result.versions.push_back(state.heads[append.stream].version);
    if (append.events.empty()) continue;
    AppendedEvents& there = appended[append.stream.name()];
    there = {there.count + std::ssize(append.events), result.versions.back().value()};
  }
  if (rows.size() > before) {
    result.first = rows[before]->sequence;
    result.last = rows.back()->sequence;
  }

  std::vector<StoredEvent> events;
  for (std::size_t i = before; i < rows.size(); ++i) events.push_back(rows[i]->view());
  if (!events.empty()) {
    for (TransactionParticipant* const participant : participants) {
      participant->on_append(transaction, events);
    }
  }
  if (!request.append_id.empty()) {
    state.append_ids[std::string{request.append_id}] = {
        {.first = result.first, .last = result.last, .repeated = true}, std::move(appended)};
  }
  return result;
}

void MemoryStore::Core::append_event(const StreamAppend& append, const NewEvent& event,
                                     const AppendRequest& request, const std::string& metadata,
                                     std::string& correlation) {
  EventKind& kind = kinds_by_key_[{std::string{event.type}, event.schema_version, event.publishes}];
  if (kind.number == 0) {
    kind = {++kinds_, std::string{event.type}, event.schema_version, event.publishes};
  }
  if (event.declared) {
    note_tags(event.type, *event.declared);
  } else {
    state.tag_facts.check_carries(event, append.stream);
  }
  const Context* const own = event.context;
  StreamHead& head = state.heads[append.stream];
  const Timestamp now = clock.now();
  auto row = std::make_shared<const Row>(
      Row{.stream = append.stream,
          .kind = kind,
          .correlation =
              own != nullptr && !own->correlation_id.empty() ? own->correlation_id : correlation,
          .metadata = own != nullptr ? metadata::encode(*own) : metadata,
          .payload = std::string{event.payload},
          .sequence = GlobalSequence{static_cast<std::int64_t>(rows.size()) + 1},
          .version = head.version.next(),
          .id = event.id.is_nil() ? ids.next(now) : event.id,
          .recorded_at = now,
          .causation_id = own != nullptr ? own->causation_id : request.context.causation_id,
          .published_before = head.published,
          .tags = join_tags(event.tags, append.stream)});
  if (correlation.empty()) correlation = row->id.to_string();
  head.version = row->version;
  if (event.publishes) head.published = row->version;
  const std::lock_guard lock{mutex};
  rows.push_back(std::move(row));
}

void MemoryStore::Core::run(OpenTransaction& transaction, FunctionRef<void(Transaction&)> work) {
  const std::size_t before = rows.size();
  MemoryState saved = state;
  const auto give_up = [&] {
    go_back_to(before, std::move(saved));
    transaction.settle(TransactionOutcome::State::rolled_back);
  };
  try {
    const stela::detail::TransactionScope scope;
    work(transaction);
  } catch (const Error& e) {
    give_up();
    conventions.metrics->count("stela_store_failed_writes_total", 1,
                               {{"error", to_string(e.code())}});
    throw;
  } catch (...) {
    give_up();
    throw;
  }
  const std::lock_guard lock{mutex};
  committed = rows.size();
  transaction.settle(TransactionOutcome::State::committed);
  if (committed > before) {
    conventions.metrics->count("stela_store_commits_total", 1, {});
    conventions.metrics->count("stela_store_writes_total", 1, {});
    conventions.metrics->count("stela_store_events_total",
                               static_cast<std::int64_t>(committed - before), {});
  }
}

}  // namespace stela::testing
