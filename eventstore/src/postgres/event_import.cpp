#include "postgres/event_import.hpp"

#include "database/postgres/connection.hpp"
#include "postgres/checksums.hpp"
#include "postgres/tags.hpp"

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
  /// 0 if there is no such stream yet.
  std::int64_t stream = 0;
  std::int64_t version = 0;
  std::int64_t published = 0;
};
/// By the names of streams, which the events own.
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
  Parameters parameters;
  parameters.add(names);
  const Result rows = connection.query(
      "SELECT n.at, t.stream, h.version, CASE WHEN k.publishes THEN h.version "
      "ELSE h.published_before END "
      "FROM unnest($1::text[]) WITH ORDINALITY AS n(name, at) "
      "JOIN stela.streams AS t ON t.name = n.name "
      "JOIN LATERAL (SELECT e.version, e.published_before, e.kind FROM stela.events AS e "
      "WHERE e.stream = t.stream ORDER BY e.version DESC LIMIT 1) AS h ON true "
      "LEFT JOIN stela.event_kinds AS k ON k.kind = h.kind ORDER BY n.at",
      std::move(parameters), "finding the streams of an import");
  Heads heads;
  int row = 0;
  std::int64_t at = 0;
  for (const std::string_view name : wanted) {
    Head head;
    ++at;
    if (row < rows.rows() && rows.integer(row, 0) == at) {
      head = {rows.integer(row, 1), rows.integer(row, 2), rows.integer(row, 3)};
      ++row;
    }
    heads.emplace(name, head);
  }
  return heads;
}

/// In the order in which the events meet them.
void insert_streams(Connection& connection, std::span<const ParsedEvent> events, Heads& heads) {
  std::vector<Head*> added;
  Array names = Array::of_text();
  for (const ParsedEvent& event : events) {
    Head& head = heads.at(event.stream.name());
    if (head.stream != 0) continue;
    // Until its number is known.
    head.stream = -1;
    added.push_back(&head);
    names.add_bytes(event.stream.name());
  }
  if (added.empty()) return;
  Parameters parameters;
  parameters.add(names);
  const Result rows = connection.query(
      "INSERT INTO stela.streams (stream, name) "
      "SELECT (SELECT coalesce(max(t.stream), 0) FROM stela.streams AS t) + n.at, n.name "
      "FROM unnest($1::text[]) WITH ORDINALITY AS n(name, at) ORDER BY n.at RETURNING stream",
      std::move(parameters), "storing the streams of an import");
  for (std::size_t i = 0; i < added.size(); ++i) {
    added[i]->stream = rows.integer(static_cast<int>(i), 0);
  }
}

struct KindArrays {
  Array categories = Array::of_text();
  Array types = Array::of_text();
  Array versions = Array::of_int4();
  Array publishes = Array::of_bool();

  Parameters parameters() {
    Parameters all;
    all.add(categories).add(types).add(versions).add(publishes);
    return all;
  }
};

Kinds settle_kinds(Connection& connection, std::span<const ParsedEvent> events) {
  Kinds kinds;
  KindArrays arrays;
  for (const ParsedEvent& event : events) kinds.emplace(kind_of(event), 0);
  for (const auto& [key, number] : kinds) {
    const auto& [category, type, version, publishes] = key;
    arrays.categories.add_bytes(category);
    arrays.types.add_bytes(type);
    arrays.versions.add_int4(version);
    arrays.publishes.add_bool(publishes);
  }
  constexpr std::string_view insert =
      "INSERT INTO stela.event_kinds (kind, category, type, version, publishes) "
      "SELECT (SELECT coalesce(max(k.kind), 0) FROM stela.event_kinds AS k) "
      "+ row_number() OVER (ORDER BY n.at), n.category, n.type, n.version, n.publishes "
      "FROM unnest($1::text[], $2::text[], $3::integer[], $4::boolean[]) WITH ORDINALITY "
      "AS n(category, type, version, publishes, at) "
      "WHERE NOT EXISTS (SELECT FROM stela.event_kinds AS k WHERE k.category = n.category "
      "AND k.type = n.type AND k.version = n.version AND k.publishes = n.publishes)";
  constexpr std::string_view find =
      "SELECT k.kind FROM unnest($1::text[], $2::text[], $3::integer[], $4::boolean[]) "
      "WITH ORDINALITY AS n(category, type, version, publishes, at) "
      "JOIN stela.event_kinds AS k ON k.category = n.category AND k.type = n.type "
      "AND k.version = n.version AND k.publishes = n.publishes ORDER BY n.at";
  Connection::Pipeline pipeline{connection};
  pipeline.add(insert, arrays.parameters());
  pipeline.add(find, arrays.parameters());
  const auto results = pipeline.run_all("storing the kinds of an import");
  int row = 0;
  for (auto& [key, number] : kinds) number = results[1].integer(row++, 0);
  return kinds;
}

/// Empty and nil stand for NULL.
void add_text(Array& array, std::string_view text) {
  text.empty() ? array.add_null() : array.add_bytes(text);
}

/// The rows of one statement, a column in an array.
class EventTable {
 public:
  void add(std::int64_t stream, std::int64_t kind, const StoredEvent& event) {
    sequences_.add(event.sequence.value());
    streams_.add(stream);
    versions_.add(event.version.value());
    times_.add(event.recorded_at.time_since_epoch().count());
    published_.add(event.published_before.value());
    checksums_.add(event_checksum(event));
    kinds_.add_int4(kind);
    ids_.add_uuid(event.id);
    event.causation_id.is_nil() ? causations_.add_null() : causations_.add_uuid(event.causation_id);
    add_text(correlations_, event.correlation);
    add_text(metadata_, event.metadata);
    payloads_.add_bytes(event.payload);
  }

  void insert(Connection& connection) {
    Parameters parameters;
    parameters.add(sequences_).add(streams_).add(versions_).add(times_).add(published_);
    parameters.add(checksums_).add(kinds_).add(ids_).add(causations_).add(correlations_);
    parameters.add(metadata_).add(payloads_);
    connection.query(
        "INSERT INTO stela.events (sequence, stream, version, recorded_at, published_before, "
        "checksum, kind, event_id, causation_id, correlation_id, metadata, payload) "
        "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
        "$5::bigint[], $6::bigint[], $7::integer[], $8::uuid[], $9::uuid[], $10::text[], "
        "$11::text[], $12::bytea[])",
        std::move(parameters), "storing the events of an import");
  }

 private:
  Array sequences_ = Array::of_int8();
  Array streams_ = Array::of_int8();
  Array versions_ = Array::of_int8();
  Array times_ = Array::of_int8();
  Array published_ = Array::of_int8();
  Array checksums_ = Array::of_int8();
  Array kinds_ = Array::of_int4();
  Array ids_ = Array::of_uuid();
  Array causations_ = Array::of_uuid();
  Array correlations_ = Array::of_text();
  Array metadata_ = Array::of_text();
  Array payloads_ = Array::of_bytes();
};

/// The tags of the events that have any, and the entries of their index.
class TagTable {
 public:
  void add(const ParsedEvent& event, std::int64_t kind) {
    const std::int64_t sequence = event.sequence.value();
    const std::string tags = join_tags(event.tags, event.stream);
    if (tags.empty()) return;
    is_empty_ = false;
    sequences_.add(sequence);
    texts_.add_bytes(tags);
    checksums_.add(tags_checksum(tags, sequence, 0));
    split_tags(tags, [&](std::string_view tag) {
      hashes_.add(hash_of_tag(tag));
      places_.add(sequence);
      kinds_.add_int4(kind);
    });
  }

  void insert(Connection& connection) {
    if (is_empty_) return;
    Parameters rows;
    rows.add(sequences_).add(texts_).add(checksums_);
    Parameters entries;
    entries.add(hashes_).add(places_).add(kinds_);
    Connection::Pipeline pipeline{connection};
    pipeline.add(
        "INSERT INTO stela.event_tags (sequence, part, tags, checksum) "
        "SELECT n.sequence, 0, n.tags, n.checksum "
        "FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS n(sequence, tags, checksum)",
        std::move(rows));
    pipeline.add(
        "INSERT INTO stela.tag_index (tag, sequence, kind) "
        "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) ON CONFLICT DO NOTHING",
        std::move(entries));
    pipeline.run_all("storing the tags of an import");
  }

 private:
  bool is_empty_ = true;
  Array sequences_ = Array::of_int8();
  Array texts_ = Array::of_text();
  Array checksums_ = Array::of_int8();
  Array hashes_ = Array::of_int8();
  Array places_ = Array::of_int8();
  Array kinds_ = Array::of_int4();
};

/// Those that follow their streams' heads and have their tags, up to the first that doesn't.
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
    Array flags = Array::of_bool();
    flags.add_bool(fact.always);
    flags.add_bool(fact.several);
    Parameters parameters;
    parameters.add(std::string_view{fact.type}).add(std::string_view{fact.category});
    parameters.add(flags).add(fact.since);
    connection.query(
        "INSERT INTO stela.tag_types (type, category, always, several, since) "
        "VALUES ($1, $2, ($3::boolean[])[1], ($3::boolean[])[2], $4)",
        std::move(parameters), "noting the tags of a type");
    tag_facts_.add(fact);
    has_added = true;
  }
  // Writers that know of these types what was so before must learn it.
  if (has_added) connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
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
  EventTable rows;
  TagTable tags;
  for (const ParsedEvent& event : fitting) {
    Head& head = heads.at(event.stream.name());
    const std::int64_t kind = kinds.at(kind_of(event));
    rows.add(head.stream, kind, event.view(event.kind, StreamVersion{head.published}));
    tags.add(event, kind);
    if (event.kind.publishes) head.published = event.version.value();
  }
  rows.insert(connection);
  tags.insert(connection);
  return outcome;
}

std::int64_t EventImport::append_id_checksum(std::string_view append_id, std::int64_t first,
                                             std::int64_t last) const {
  return id_checksum(append_id, first, last);
}

/// Facts have none here.
std::int64_t EventImport::fact_checksum(std::string_view, std::string_view) const {
  return 0;
}

}  // namespace stela::postgres
