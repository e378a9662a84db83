// The writer's knowledge of which types carry which tags, and have personal fields.
#pragma once

#include "database/sqlite/connection.hpp"
#include "forgotten_keys.hpp"

#include <stela/framework/detail/tag_facts.hpp>
#include <stela/framework/event_store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stela::sqlite {

/// All tag facts of the database. CorruptEvent if one doesn't match its checksum.
TagFacts read_tag_facts(Connection& connection);
/// Replaces the fact of the same type and category.
void put_tag_fact(Connection& connection, const TagFact& fact);
std::int64_t checksum_of_fact(const TagFact& fact);

/// True if events of the type lack tags of the category, other than their streams' own.
bool lacks_tags(Connection& connection, const TagFacts& facts, const TagNeed& need);

/// Checks the facts once for each kind of event, and remembers the result. Threads: the leader.
class TagGuard {
 public:
  /// UsageError if the event must not be appended with its tags.
  void check(Connection& connection, std::int32_t kind, const NewEvent& event,
             const StreamId& stream, std::int64_t next_sequence) {
    const auto at = static_cast<std::size_t>(kind);
    const void* const declaration = identity_of(event);
    if (at < checked_.size() && checked_[at].declaration == declaration &&
        (event.keys.empty() || checked_[at].is_personal)) {
      return;
    }
    look(connection, at, event, stream, next_sequence);
  }
  /// Records the type's declaration; TagsMissing if its events lack tags of the category. False if
  /// there was nothing to record.
  bool require(Connection& connection, const TagNeed& need, std::int64_t next_sequence);
  /// Records parts of a type's declaration that the database doesn't know yet. UsageError if its
  /// events carry other tags there. False if there was nothing to record.
  bool settle(Connection& connection, std::string_view type,
              std::span<const TagDeclaration> declared, std::int64_t next_sequence);
  std::int64_t epoch(Connection& connection);
  TagFacts& facts(Connection& connection);

  /// Call it when a transaction begins.
  void begin() noexcept { has_added_ = false; }
  /// Forgets the facts, because another connection may have written.
  void forget() noexcept;
  /// The transaction, or a savepoint of it, was rolled back: the numbers of its kinds will be
  /// reused, and the facts that it added are gone. Facts added outside the savepoint are still
  /// there; they disappear if the rest is rolled back.
  void roll_back() noexcept {
    checked_.clear();
    if (has_added_) is_known_ = false;
  }

 private:
  /// Identifies the declaration of an event's type.
  static const void* identity_of(const NewEvent& event) noexcept;
  void look(Connection& connection, std::size_t kind, const NewEvent& event, const StreamId& stream,
            std::int64_t next_sequence);

  /// A declaration that agrees with the facts.
  struct Checked {
    const void* declaration = nullptr;
    bool is_personal = false;
  };
  void note_personal(Connection& connection, std::string_view type);

  bool is_known_ = false;
  /// The transaction has added facts.
  bool has_added_ = false;
  TagFacts facts_;
  PersonalTypes personal_types_;
  std::int64_t epoch_ = 0;
  /// One for each kind.
  std::vector<Checked> checked_;
};

}  // namespace stela::sqlite
