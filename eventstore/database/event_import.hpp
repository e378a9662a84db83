// Events that already have ids, versions and times, and how an engine stores them.
#pragma once

#include "database/connection.hpp"

#include <stela/framework/detail/tag_facts.hpp>
#include <stela/framework/stored_event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// An event that owns its contents.
struct ParsedEvent {
  StreamId stream;
  EventKind kind;
  GlobalSequence sequence;
  StreamVersion version;
  EventId id;
  Timestamp recorded_at;
  std::string correlation;
  EventId causation_id;
  std::string metadata;
  std::string payload;
  std::vector<Tag> tags;

  /// The event as if stored, except for `published_before`, which isn't in the line.
  StoredEvent view(const EventKind& stored_kind, StreamVersion published_before) const noexcept {
    return {sequence,    stream,       version,  stored_kind,      id,     recorded_at,
            correlation, causation_id, metadata, published_before, payload};
  }
};

/// Stores events that already have their numbers. Participants aren't told.
/// Threads: one at a time.
class EventImport {
 public:
  /// How many events were stored, and why the next one can't be; empty if all were stored.
  struct Outcome {
    std::size_t stored = 0;
    std::string problem = {};
  };

  virtual ~EventImport() = default;
  /// Called inside the transaction of the following events: records the tags of types that the
  /// database doesn't know yet. UsageError if it can't.
  virtual void settle_tag_types(database::Connection& connection,
                                std::span<const TagFact> types) = 0;
  /// Called inside a transaction without concurrent writers, after the last event of the store.
  virtual Outcome store(database::Connection& connection, std::span<const ParsedEvent> events) = 0;
  /// The checksums of rows that the importer stores itself.
  virtual std::int64_t append_id_checksum(std::string_view append_id, std::int64_t first,
                                          std::int64_t last) const = 0;
  virtual std::int64_t fact_checksum(std::string_view name, std::string_view value) const = 0;
};

/// Why an event can't be imported if its stream is at another version.
inline std::string describe_misfit(const ParsedEvent& event, std::int64_t version) {
  return "version " + std::to_string(event.version.value()) + " of '" + event.stream.name() +
         "' follows version " + std::to_string(version);
}

/// Why an event can't be imported if it lacks a tag that all events of its type have: decisions
/// rely on it. Empty if it lacks none.
inline std::string describe_missing_tag(const ParsedEvent& event, const TagFacts& facts) {
  if (!facts.knows(event.kind.type)) return {};
  for (const TagFact& fact : facts.list()) {
    if (fact.type != event.kind.type || !fact.always) continue;
    if (fact.since > event.sequence.value() || event.stream.category() == fact.category) continue;
    const bool has = std::any_of(event.tags.begin(), event.tags.end(),
                                 [&](const Tag& tag) { return tag.category() == fact.category; });
    if (has) continue;
    return "every event of type '" + fact.type + "' in the store has a tag of category '" +
           fact.category + "', and this one has none";
  }
  return {};
}

}  // namespace stela
