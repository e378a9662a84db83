// Listing a store's tags, and adding tags to its history.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/codec/codec.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/query.hpp>
#include <stela/framework/tags.hpp>
#include <stela/framework/view.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

struct TagEntry {
  Tag tag;
  /// The first event with this tag.
  GlobalSequence first;
};

/// Selects tags. The tags that are stream names aren't listed.
struct TagListing {
  /// Empty: all.
  std::string category = {};
  /// Only tags that come after this one.
  std::string after = {};
  std::int64_t limit = no_limit;
};

/// Lists tags in index order, which isn't the order of their texts. So it reads only the tags that
/// it lists, unless a category is selected.
STELA_EVENTSTORE_EXPORT std::vector<TagEntry> list_tags(Store& store, const TagListing& which = {});

struct AddTagsOptions {
  /// Counts events. Called between batches. An exception from it ends the work, which can continue
  /// later.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct AddedTags {
  /// How many events of the type were examined, and how many got tags.
  std::int64_t events = 0;
  std::int64_t tagged = 0;
  /// False if it was stopped. Called again, it continues.
  bool finished = true;
};

/// Events of the type no longer carry tags of this category: programs that don't declare it may
/// append again, and decisions that need it are refused. Existing tags stay. False if it carried
/// none.
STELA_EVENTSTORE_EXPORT bool forget_tags(Store& store, std::string_view type,
                                         std::string_view category);

namespace detail {

/// How an event type gets its tags.
struct TagsOfType {
  /// The current name, and former ones.
  std::vector<std::string> names;
  std::span<const TagDeclaration> declared;
  std::function<std::vector<Tag>(const StoredEvent&)> tags_of;
};

STELA_EVENTSTORE_EXPORT AddedTags add_tags(Store& store, const TagsOfType& type,
                                           const AddTagsOptions& options);

}  // namespace detail

/// Adds the tags that `E` declares to existing events that lack them, because they were appended
/// before the declaration. Other writers may continue. Once it has finished, decisions can rely on
/// the tags; until then they are refused (TagsMissing). Call it from one process. CorruptEvent if
/// an event can't be decoded; UsageError if a value can't be a tag.
template <Event E>
AddedTags add_tags(Store& store, const AddTagsOptions& options = {}) {
  static_assert(detail::check_event<E>());
  static_assert(detail::Tagged<E>, "stela: add_tags() is for an event that declares tags");
  const Reading reading = store.conventions().reading();
  constexpr auto& declared = detail::declared_tags<E>;
  detail::TagsOfType type{.declared = std::span{declared.all}.first(declared.size),
                          .tags_of = [reading](const StoredEvent& event) {
                            std::vector<Tag> tags;
                            EventDecoder<EventSet<E>>{reading}.decode(event, [&](const E& decoded) {
                              detail::for_each_tag(decoded, [&](Tag tag) { tags.push_back(tag); });
                            });
                            return tags;
                          }};
  detail::for_each_name<E>([&](std::string_view name) { type.names.emplace_back(name); });
  return detail::add_tags(store, type, options);
}

}  // namespace stela
