#include <stela/eventstore/tags.hpp>

#include "store_core.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela {
namespace {

constexpr std::size_t tag_batch_events = 1000;

/// The wanted tags that the event lacks.
std::vector<Tag> missing_of(std::vector<Tag> wanted, const StoredEvent& event) {
  std::erase_if(wanted, [&](const Tag& tag) { return has_tag(event, tag); });
  return wanted;
}

}  // namespace

bool forget_tags(Store& store, std::string_view type, std::string_view category) {
  return store_core(store).forget_tags(type, category);
}

std::vector<TagEntry> list_tags(Store& store, const TagListing& which) {
  std::vector<TagEntry> found;
  if (which.limit <= 0) return found;
  store_core(store).for_each_tag(which.after, [&](std::string_view text, GlobalSequence first) {
    TagEntry entry{Tag::parse(text), first};
    if (which.category.empty() || entry.tag.category() == which.category) {
      found.push_back(std::move(entry));
    }
    return static_cast<std::int64_t>(found.size()) < which.limit;
  });
  return found;
}

AddedTags detail::add_tags(Store& store, const TagsOfType& type, const AddTagsOptions& options) {
  Store::Core& core = store_core(store);
  std::vector<TagNeed> needs;
  for (const std::string& name : type.names) {
    for (const TagDeclaration& tag : type.declared) {
      needs.push_back({name, tag.category, type.declared});
    }
  }
  // From here on, new events carry the tags.
  core.declare_tags(needs);
  AddedTags added;
  const GlobalSequence head = store.last_sequence();
  std::vector<TagsOfEvent> batch;
  const auto write = [&](GlobalSequence reached) {
    if (!batch.empty()) added.tagged += core.write_tags(batch);
    batch.clear();
    if (options.progress) options.progress({"tags", reached.value(), head.value()});
  };
  for (const StoredEvent& event :
       store.read_all({.to = head, .event_types = type.names, .with_tags = true})) {
    if (options.stop.stop_requested()) {
      added.finished = false;
      break;
    }
    ++added.events;
    std::vector<Tag> missing = missing_of(type.tags_of(event), event);
    if (missing.empty()) continue;
    batch.push_back({event.sequence, event.kind.number, event.stream, std::move(missing)});
    if (batch.size() == tag_batch_events) write(event.sequence);
  }
  write(head);
  if (added.finished) core.complete_tags(needs);
  return added;
}

}  // namespace stela
