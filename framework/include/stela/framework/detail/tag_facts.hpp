// The tags that each event type carries: a fact of a database. For authors of stores.
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
  /// `TagFact::since` of a fact that holds from the next event on.
  static constexpr std::int64_t from_now_on = -1;

  void clear() noexcept { by_type_.clear(); }
  /// Replaces the fact of the same type and category.
  void add(TagFact fact);
  bool is_empty() const noexcept { return by_type_.empty(); }
  /// All facts, by type and category.
  std::vector<TagFact> list() const;
  /// True if anything is known of the type.
  bool knows(std::string_view type) const noexcept { return by_type_.contains(type); }
  const TagFact* find(std::string_view type, std::string_view category) const noexcept;

  /// The facts to add for a type that declares these categories. They include a known fact if an
  /// event may now have several tags of the category, or none. UsageError if the type carries other
  /// tags in this database.
  std::vector<TagFact> additions(std::string_view type,
                                 std::span<const TagDeclaration> declared) const;
  /// For an appender that doesn't know the event's type: UsageError if the event lacks a tag that
  /// every event of the type has.
  void check_carries(const NewEvent& event, const StreamId& stream) const;

 private:
  const std::vector<TagFact>& of(std::string_view type) const noexcept;

  std::map<std::string, std::vector<TagFact>, std::less<>> by_type_;
};

/// TagsMissing: events of the type lack tags of this category beside those of their streams.
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_tags_missing(const TagNeed& need);

}  // namespace stela
