#include "commands/erasures.hpp"

#include "cli/exit.hpp"
#include "console/sha256.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/detail/journal.hpp>
#include <stela/eventstore/forget.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/projections/operations.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

using description::ErasedKey;
using description::Erasure;
using description::Follower;

constexpr int entries_at_a_time = 1'000;

/// The data that no forgetting reaches, for plans and reports.
constexpr std::string_view not_reached[] = {
    "what was never sealed: names of streams, tags, actors, headers and clear columns of read "
    "models until their projectors have passed the erasure",
    "what a database keeps of rows that were deleted: on PostgreSQL dead rows, statistics and the "
    "write-ahead log, until VACUUM and ANALYZE of the tables and the end of the log; and tables of "
    "former builds of a projector until they are dropped",
    "backups that were made before: of clear columns, and of the key store with a master key that "
    "still exists",
    "blocks that a file system or a disk copies instead of overwriting them, as SSDs do: encrypt "
    "the "
    "disk of the key store",
    "logs that quote a value, in a server and elsewhere; and texts of errors that name no event, "
    "of partitions and of readers of a broker's stream, until these try again",
    "what other programs copied: they get the event stela.forgotten",
    "values of the same person that were recorded again for another purpose",
};

std::string binding_of(const StreamId& subject, const std::vector<ErasedKey>& keys) {
  return sha256((keys.empty() ? std::string{} : keys.front().id) + '\n' + subject.name());
}

/// Calls `use` with each entry about people and keys, oldest first, until it returns false.
template <class F>
void for_each_entry(Store& store, F&& use) {
  JournalQuery query{.limit = entries_at_a_time, .direction = Direction::forward};
  while (true) {
    const auto entries = Journal{store}.entries(query);
    if (entries.empty()) return;
    query.after = entries.back().number;
    for (const JournalEntry& one : entries) {
      if (one.part == part_of_privacy && !use(one)) return;
    }
  }
}

std::string publication_of_erasure(StoreSession& session, GlobalSequence sequence) try {
  if (!session.has_outbox()) return {};
  const auto message = session.operations().show(sequence);
  return message ? std::string{to_string(message->state)} : std::string{};
} catch (const Exit&) {
  // Only the application knows the outbox's partitioner.
  return {};
}

}  // namespace

std::optional<Erasure> erasure_of(Store& store, const StoredEvent& event) {
  std::optional<Erasure> erasure;
  EventDecoder<EventSet<Forgotten>> decoder{store.conventions().reading()};
  if (event.type() != Forgotten::event_type.name) return erasure;
  decoder.decode(event, [&](const Forgotten& fence) {
    erasure.emplace(Erasure{
        .sequence = event.sequence, .at = event.recorded_at, .by = fence.by, .why = fence.reason});
    for (std::size_t i = 0; i < fence.keys.size(); ++i) {
      erasure->keys.push_back(
          {fence.keys[i], i < fence.purposes.size() ? fence.purposes[i] : std::string{}});
    }
    erasure->binding = binding_of(forgotten_subject(event.stream), erasure->keys);
  });
  return erasure;
}

std::vector<Erasure> erasures_of(Store& store, const StreamId& subject) {
  std::vector<Erasure> all;
  const StreamId stream = StreamId::of(Forgotten::category, subject.name());
  for (const StoredEvent& event : store.read_stream(stream)) {
    try {
      if (auto erasure = erasure_of(store, event)) all.push_back(std::move(*erasure));
    } catch (const Error& e) {
      // An imported message that isn't an erasure forgets nobody, and hides no other.
      if (e.is_retryable() || e.code() == ErrorCode::store_failed) throw;
    }
  }
  return all;
}

void find_tombstones(Keys& keys, const StreamId& subject, std::vector<Erasure>& erasures) {
  Erasure without_event{.at = Timestamp::max()};
  for (const DestroyedKey& one : keys.destroyed_of(subject.name())) {
    bool is_named = false;
    for (Erasure& erasure : erasures) {
      for (ErasedKey& key : erasure.keys) {
        if (key.id != one.id.to_string()) continue;
        is_named = true;
        key.generation = one.generation;
        key.destroyed_at = one.destroyed_at;
        key.rotation = one.rotation;
      }
    }
    if (is_named) continue;
    without_event.at = std::min(without_event.at, one.destroyed_at);
    without_event.keys.push_back(
        {one.id.to_string(), one.purpose, one.generation, one.destroyed_at, one.rotation});
  }
  if (without_event.keys.empty()) return;
  without_event.binding = binding_of(subject, without_event.keys);
  erasures.push_back(std::move(without_event));
}

std::vector<Follower> followers_of(Store& store, GlobalSequence fence) {
  std::vector<Follower> all;
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    all.push_back({one.name, one.build, one.position, one.position >= fence});
  }
  return all;
}

void complete_erasure(Erasure& erasure, StoreSession& database, Keys& keys,
                      const StreamId& subject) {
  erasure.living_keys = std::ssize(keys.keys_of(subject.name()));
  if (erasure.sequence.value() > 0) {
    erasure.projectors = followers_of(database.store(), erasure.sequence);
    erasure.publication = publication_of_erasure(database, erasure.sequence);
  }
  // A restored store that doesn't know of it may have what was cleared; and an event that was only
  // imported has forgotten nobody.
  constexpr GlobalSequence no_fence{-1};
  erasure.is_known = erasure.is_confirmed = true;
  for (const ErasedKey& key : erasure.keys) {
    const auto id = KeyId::parse(key.id);
    const GlobalSequence fence = id ? fence_of(database.store(), *id).value_or(no_fence) : no_fence;
    const bool is_own = fence == erasure.sequence && fence.value() > 0;
    erasure.is_confirmed = erasure.is_confirmed && is_own;
    erasure.is_known = erasure.is_known && (is_own || fence.value() == 0);
  }
  if (!erasure.is_destroyed() || !erasure.is_known) return;
  std::int64_t rotation = 0;
  for (const ErasedKey& key : erasure.keys) rotation = std::max(rotation, key.rotation);
  erasure.certain_at = keys.certain_since(rotation);
}

std::string name_in_journal(GlobalSequence erasure) {
  return "erasure " + std::to_string(erasure.value());
}

bool is_noted(Store& store, const Erasure& erasure) {
  const std::string name = name_in_journal(erasure.sequence);
  bool is_there = false;
  for_each_entry(store, [&](const JournalEntry& one) {
    is_there = one.subject == name;
    return !is_there;
  });
  return is_there;
}

Json not_reached_in_json() {
  return json_list(not_reached, [](std::string_view text) {
    std::string out;
    json::append_string(out, text);
    return out;
  });
}
void tell_not_reached(Output& out) {
  out.line("Not reached:");
  for (const std::string_view text : not_reached) out.line("- " + std::string{text});
}

}  // namespace stela::tool
