// Which event types carry which tags: a fact of a database. For authors of stores.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// The facts of a database. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT TagFacts {
 public:
  void clear() noexcept { by_type_.clear(); }
  void add(TagFact fact);
  bool is_empty() const noexcept { return by_type_.empty(); }
  /// All of them, by type and category.
  std::vector<TagFact> list() const;
  /// True if anything is known of the type.
  bool knows(std::string_view type) const noexcept { return by_type_.contains(type); }
  const TagFact* find(std::string_view type, std::string_view category) const noexcept;

  /// The facts that aren't known yet of a type that declares these categories; `since` of them is
  /// left to the caller. UsageError if the type carries other tags in this database.
  std::vector<TagFact> additions(std::string_view type,
                                 std::span<const TagDeclaration> declared) const;
  /// For an event of an appender that doesn't know its type: UsageError if it lacks a tag that
  /// every event of the type has.
  void check_carries(const NewEvent& event, const StreamId& stream) const;

 private:
  const std::vector<TagFact>& of(std::string_view type) const noexcept;

  std::map<std::string, std::vector<TagFact>, std::less<>> by_type_;
};

/// TagsMissing: events of the type, in streams of other categories, lack tags of this category.
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_tags_missing(const TagNeed& need);

}  // namespace stela
