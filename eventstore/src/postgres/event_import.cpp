#include "postgres/event_import.hpp"

#include "database/postgres/connection.hpp"
#include "postgres/checksums.hpp"
#include "postgres/tags.hpp"
#include "postgres_sql/event_import.hpp"
#include "postgres_sql/participants.hpp"

#include <stela/framework/query.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

namespace stela::postgres {
namespace {

struct Head {
  /// 0 if the stream doesn't exist yet.
  std::int64_t stream = 0;
  std::int64_t version = 0;
  std::int64_t published = 0;
};
/// By the streams' names, which the events own.
using Heads = std::map<std::string_view, Head>;
/// Category, type, version, whether it publishes.
using KindKey = std::tuple<std::string_view, std::string_view, int, bool>;
using Kinds = std::map<KindKey, std::int64_t>;

KindKey kind_of(const ParsedEvent& event) {
  return {event.stream.category(), event.kind.type, event.kind.schema_version,
          event.kind.publishes};
}

Heads find_heads(Connection& connection, std::span<const ParsedEvent> events) {
  std::set<std::string_view> wanted;
  for (const ParsedEvent& event : events) wanted.insert(event.stream.name());
  Array names = Array::of_text();
  for (const std::string_view name : wanted) names.add_bytes(name);
  auto rows = connection.rows(sql::heads{.names = names});
  Heads heads;
  bool is_found = rows.step();
  std::int64_t at = 0;
  for (const std::string_view name : wanted) {
    Head& head = heads[name];
    if (++at != (is_found ? rows.at() : 0)) continue;
    head = {rows.stream(), rows.version(), rows.published()};
    is_found = rows.step();
  }
  return heads;
}

/// Inserts the missing streams in the order of their first events.
void insert_streams(Connection& connection, std::span<const ParsedEvent> events, Heads& heads) {
  std::vector<Head*> added;
  Array names = Array::of_text();
  for (const ParsedEvent& event : events) {
    Head& head = heads.at(event.stream.name());
    if (head.stream != 0) continue;
    // Marks the stream as added until its number is known.
    head.stream = -1;
    added.push_back(&head);
    names.add_bytes(event.stream.name());
  }
  if (added.empty()) return;
  auto rows = connection.rows(sql::insert_streams{.names = names});
  for (Head* const head : added) {
    rows.step();
    head->stream = rows.stream();
  }
}

Kinds settle_kinds(Connection& connection, std::span<const ParsedEvent> events) {
  Kinds kinds;
  sql::imported_kind_rows wanted;
  for (const ParsedEvent& event : events) kinds.emplace(kind_of(event), 0);
  for (const auto& [key, number] : kinds) {
    const auto& [category, type, version, publishes] = key;
    wanted.add({.category = category, .type = type, .version = version, .publishes = publishes});
  }
  Connection::Pipeline pipeline{connection};
  pipeline.add(sql::insert_kinds{.kinds = wanted});
  const auto found = pipeline.add(sql::find_kinds{.kinds = wanted});
  auto results = pipeline.run_all("storing the kinds of an import");
  auto rows = found.rows(results);
  for (auto& [key, number] : kinds) {
    rows.step();
    number = rows.kind();
  }
  return kinds;
}

/// The rows of events and tags, and the entries of the tag index.
class ImportedRows {
 public:
  void add(std::int64_t stream, std::int64_t kind, const StoredEvent& event) {
    events_.add({.sequence = event.sequence.value(),
                 .stream = stream,
                 .version = event.version.value(),
                 .recorded_at = event.recorded_at,
                 .published_before = event.published_before.value(),
                 .checksum = event_checksum(event),
                 .kind = kind,
                 .event_id = event.id,
                 .causation_id = database::or_null(event.causation_id),
                 .correlation_id = database::or_null(event.correlation),
                 .metadata = database::or_null(event.metadata),
                 .payload = event.payload});
  }
  void add_tags(const ParsedEvent& event, std::int64_t kind) {
    const std::int64_t sequence = event.sequence.value();
    const std::string tags = join_tags(event.tags, event.stream);
    if (tags.empty()) return;
    tags_.add({.sequence = sequence, .tags = tags, .checksum = tags_checksum(tags, sequence, 0)});
    split_tags(tags, [&](std::string_view tag) {
      entries_.add({.tag = hash_of_tag(tag), .sequence = sequence, .kind = kind});
    });
  }

  void insert(Connection& connection) {
    connection.run(sql::insert_events{.events = events_});
    if (tags_.is_empty()) return;
    Connection::Pipeline pipeline{connection};
    pipeline.add(sql::insert_tags{.tags = tags_});
    pipeline.add(sql::insert_tag_entries{.entries = entries_});
    pipeline.run_all("storing the tags of an import");
  }

 private:
  sql::imported_event_rows events_;
  sql::imported_tags_rows tags_;
  sql::imported_entry_rows entries_;
};

/// Accepts events that follow their streams' heads and have their tags, up to the first misfit.
EventImport::Outcome check_events(std::span<const ParsedEvent> events, Heads heads,
                                  const TagFacts& facts) {
  EventImport::Outcome outcome;
  for (const ParsedEvent& event : events) {
    Head& head = heads.at(event.stream.name());
    if (event.version.value() - 1 != head.version) {
      outcome.problem = describe_misfit(event, head.version);
      break;
    }
    outcome.problem = describe_missing_tag(event, facts);
    if (!outcome.problem.empty()) break;
    ++head.version;
    ++outcome.stored;
  }
  return outcome;
}

}  // namespace

void EventImport::settle_tag_types(database::Connection& any, std::span<const TagFact> types) {
  Connection& connection = connection_of(any);
  tag_facts_ = read_tag_facts(connection);
  bool has_added = false;
  for (const TagFact& fact : types) {
    if (tag_facts_.find(fact.type, fact.category) != nullptr) continue;
    connection.run(sql::insert_tag_type{.type = fact.type,
                                        .category = fact.category,
                                        .always = fact.always,
                                        .several = fact.several,
                                        .since = fact.since});
    tag_facts_.add(fact);
    has_added = true;
  }
  // Makes writers reread the types that they have cached.
  if (has_added) connection.run(sql::change_epoch{});
}

EventImport::Outcome EventImport::store(database::Connection& any,
                                        std::span<const ParsedEvent> events) {
  Connection& connection = connection_of(any);
  Heads heads = find_heads(connection, events);
  Outcome outcome = check_events(events, heads, tag_facts_);
  const auto fitting = events.first(outcome.stored);
  if (fitting.empty()) return outcome;
  insert_streams(connection, fitting, heads);
  const Kinds kinds = settle_kinds(connection, fitting);
  ImportedRows rows;
  for (const ParsedEvent& event : fitting) {
    Head& head = heads.at(event.stream.name());
    const std::int64_t kind = kinds.at(kind_of(event));
    rows.add(head.stream, kind, event.view(event.kind, StreamVersion{head.published}));
    rows.add_tags(event, kind);
    if (event.kind.publishes) head.published = event.version.value();
  }
  rows.insert(connection);
  return outcome;
}

std::int64_t EventImport::append_id_checksum(std::string_view append_id, std::int64_t first,
                                             std::int64_t last) const {
  return id_checksum(append_id, first, last);
}

/// Facts have no checksum on PostgreSQL.
std::int64_t EventImport::fact_checksum(std::string_view, std::string_view) const {
  return 0;
}

}  // namespace stela::postgres
