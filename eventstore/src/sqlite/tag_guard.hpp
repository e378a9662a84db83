// Which types carry which tags, and have personal fields: what the writer knows of its database.
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

/// Every fact of the database. CorruptEvent if one doesn't match its checksum.
TagFacts read_tag_facts(Connection& connection);
/// Replaces the one of the same type and category.
void put_tag_fact(Connection& connection, const TagFact& fact);
std::int64_t checksum_of_fact(const TagFact& fact);

/// True if events of the type lack tags of the category beside those of their streams.
bool lacks_tags(Connection& connection, const TagFacts& facts, const TagNeed& need);

/// Asks the facts once for each kind of event, and remembers the answer. Threads: the one that
/// leads.
class TagGuard {
 public:
  /// UsageError if the event may not be appended with its tags.
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
  /// Notes what the type declares; TagsMissing if its events lack tags of the category. False if
  /// there was nothing to note.
  bool require(Connection& connection, const TagNeed& need, std::int64_t next_sequence);
  /// Notes what a type declares that the database doesn't know yet. UsageError if its events carry
  /// other tags there. False if it knows all of it.
  bool settle(Connection& connection, std::string_view type,
              std::span<const TagDeclaration> declared, std::int64_t next_sequence);
  std::int64_t epoch(Connection& connection);
  TagFacts& facts(Connection& connection);

  /// A transaction begins.
  void begin() noexcept { has_added_ = false; }
  /// Somebody else may have written.
  void forget() noexcept;
  /// The transaction, or a savepoint of it, was rolled back: the numbers of its kinds are given to
  /// others, and what it added is gone. It may still have added other facts, which are gone when
  /// the rest of it is rolled back.
  void roll_back() noexcept {
    checked_.clear();
    if (has_added_) is_known_ = false;
  }

 private:
  /// What stands for the declaration of an event's type.
  static const void* identity_of(const NewEvent& event) noexcept;
  void look(Connection& connection, std::size_t kind, const NewEvent& event, const StreamId& stream,
            std::int64_t next_sequence);

  /// What was found to agree with the facts.
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
  /// By kind.
  std::vector<Checked> checked_;
};

}  // namespace stela::sqlite
