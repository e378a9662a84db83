#include "sqlite/event_import.hpp"

#include "database/checksum.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/tag_rows.hpp"

#include <stela/framework/query.hpp>

namespace stela::sqlite {

void EventImport::settle_tag_types(database::Connection& connection,
                                   std::span<const TagFact> types) {
  tag_facts_ = read_tag_facts(connection_of(connection));
  for (const TagFact& fact : types) {
    if (tag_facts_.find(fact.type, fact.category) != nullptr) continue;
    put_tag_fact(connection_of(connection), fact);
    tag_facts_.add(fact);
  }
}

EventImport::Outcome EventImport::store(database::Connection& connection,
                                        std::span<const ParsedEvent> events) {
  // The failed transaction's entries are void.
  heads_.clear();
  kind_blocks_.clear();
  Outcome outcome;
  for (const ParsedEvent& event : events) {
    StreamHead& head = head_of(connection_of(connection), event.stream);
    if (event.version.value() - 1 != head.version) {
      outcome.problem = describe_misfit(event, head.version);
      break;
    }
    outcome.problem = describe_missing_tag(event, tag_facts_);
    if (!outcome.problem.empty()) break;
    store(connection_of(connection), head, event);
    ++outcome.stored;
  }
  return outcome;
}

StreamHead& EventImport::head_of(Connection& connection, const StreamId& stream) {
  StreamHeads::Entry* entry = heads_.find(stream.name());
  if (entry == nullptr) entry = &heads_.add(stream.name(), find_head(connection, kinds_, stream));
  return entry->second;
}

void EventImport::store(Connection& connection, StreamHead& head, const ParsedEvent& event) {
  if (head.stream == 0) head.stream = insert_stream(connection, event.stream);
  const EventKind& kind = kinds_.intern(
      {event.stream.category(), event.kind.type, event.kind.schema_version, event.kind.publishes},
      connection);
  insert_row(connection, head.stream, event.view(kind, StreamVersion{head.published}));
  if (const std::string tags = join_tags(event.tags, event.stream); !tags.empty()) {
    insert_tags(connection, {event.sequence.value(), kind.number}, tags);
  }
  kind_blocks_.note(connection, static_cast<std::size_t>(kind.number), event.sequence.value());
  head.version = event.version.value();
  if (kind.publishes) head.published = head.version;
}

std::int64_t EventImport::append_id_checksum(std::string_view append_id, std::int64_t first,
                                             std::int64_t last) const {
  return database::checksum_of({first, last}, {append_id});
}

std::int64_t EventImport::fact_checksum(std::string_view name, std::string_view value) const {
  return database::checksum_of({}, {name, value});
}

}  // namespace stela::sqlite
