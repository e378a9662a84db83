// Queries by type and tag, and the conditions of appends.
#pragma once

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/tags.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

class TransactionOutcome;
struct Standpoint;
struct StoreIdentity;

enum class Direction : std::uint8_t { forward, backward };

inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

/// Events of one of the types that have all of the tags.
struct QueryItem {
  /// By name. Empty: events of any type.
  std::vector<std::string> types = {};
  /// Empty: with any tags.
  std::vector<Tag> tags = {};
};

/// Events that match one item or more.
struct Query {
  std::vector<QueryItem> items = {};

  /// Every event: one item without types and tags.
  static Query all() { return {.items = {QueryItem{}}}; }
};

/// The part of a query's matches to read.
struct QueryRange {
  /// Only events after this position.
  GlobalSequence after = {};
  GlobalSequence up_to = GlobalSequence::max();
  Direction direction = Direction::forward;
  std::int64_t limit = no_limit;
};

/// An append with it is refused (ConditionConflict) if an event after `after` matches the query.
/// Events of the append itself don't count.
struct AppendCondition {
  Query query = {};
  /// The position at which the query was answered: the store's head at that time, not the last
  /// match. Unset: no event may match at all. An item without tags needs one. A position after the
  /// last event of the store is a ConditionConflict, because the store has lost what was read
  /// there.
  std::optional<GlobalSequence> after = {};
  /// The store's tag epoch when the query was answered; 0 if it doesn't matter. A different epoch
  /// is a ConditionConflict, because past events got other tags meanwhile.
  std::int64_t tag_epoch = 0;
  /// `Standpoint::outcome` of the position. ConditionConflict unless that outcome is committed, or
  /// belongs to the appending transaction.
  std::shared_ptr<const TransactionOutcome> outcome = {};
  /// `Standpoint::store` of the position. UsageError if another store appends.
  std::shared_ptr<const StoreIdentity> store = {};

  /// Requires that nothing matching the query was appended after the position.
  STELA_FRAMEWORK_EXPORT static AppendCondition at(const Standpoint& position, Query query);
};

/// Requires events of this type to have their tags of this category, in all of history and from now
/// on.
struct TagNeed {
  std::string_view type;
  std::string_view category;
  /// All categories that the type declares.
  std::span<const TagDeclaration> declared = {};

  /// True if events in streams of the category may have further tags of it.
  bool is_of_several() const noexcept {
    return std::any_of(declared.begin(), declared.end(), [&](const TagDeclaration& one) {
      return one.category == category && one.several;
    });
  }
};

/// A database's knowledge of one category of tags of an event type.
struct TagFact {
  std::string type;
  std::string category;
  /// Every event of the type has one.
  bool always = true;
  /// An event may have several, so its stream isn't all of them.
  bool several = false;
  /// All events of the type from this sequence on have their tags; 0: all of history.
  std::int64_t since = 0;
};

/// A store's knowledge of tags.
struct TagCatalogue {
  /// By type and category.
  std::vector<TagFact> types = {};
  /// True if any event has tags beside that of its stream.
  bool has_tags = false;
};

/// The position and the tags that a decision is based on.
struct Standpoint {
  /// The last sequence: 0 if the store is empty.
  GlobalSequence head = {};
  /// Changes when tags are added to history, or a type no longer declares a category. From 1 on.
  std::int64_t tag_epoch = 1;
  /// The outcome that the position depends on: that of the open transaction or savepoint which
  /// appended its events, or noted the tags of their types. If it is rolled back, other events get
  /// the same sequences. Null if all of it is committed.
  std::shared_ptr<const TransactionOutcome> outcome = {};
  /// The store that the position belongs to. Null if the store has no identity.
  std::shared_ptr<const StoreIdentity> store = {};
};

inline constexpr std::size_t max_tags_of_event = 100;
inline constexpr std::size_t max_query_items = 10'000;
inline constexpr std::size_t max_tags_of_item = 100;
inline constexpr std::size_t max_types_of_item = 1000;

/// UsageError if the query can't be answered: it has no items, too many, or an invalid type.
STELA_FRAMEWORK_EXPORT void check_query(const Query& query);
/// UsageError as `check_query`, and if an item without tags comes without a position.
STELA_FRAMEWORK_EXPORT void check_condition(const AppendCondition& condition);

/// True if the event's stream is the tag, or if `event.tags` has it.
STELA_FRAMEWORK_EXPORT bool has_tag(const StoredEvent& event, const Tag& tag) noexcept;
/// True if the event matches the item. `event.tags` must be set.
STELA_FRAMEWORK_EXPORT bool matches(const QueryItem& item, const StoredEvent& event) noexcept;

/// The stored form of tags: each once, without the stream's own, separated by spaces.
STELA_FRAMEWORK_EXPORT std::string join_tags(std::span<const Tag> tags, const StreamId& stream);
/// Calls `f` with each tag of a stored form.
STELA_FRAMEWORK_EXPORT void split_tags(std::string_view tags,
                                       FunctionRef<void(std::string_view)> f);

}  // namespace stela
