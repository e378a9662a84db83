#include <stela/framework/event_type.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>

namespace stela {

AppendCondition AppendCondition::at(const Standpoint& position, Query query) {
  return {.query = std::move(query),
          .after = position.head,
          .tag_epoch = position.tag_epoch,
          .outcome = position.outcome,
          .store = position.store};
}

namespace {

void check_count(std::size_t count, std::size_t most, std::string_view what) {
  if (count <= most) return;
  throw UsageError{"a query has at most " + std::to_string(most) + ' ' + std::string{what} +
                   ", and this one has " + std::to_string(count)};
}

}  // namespace

void check_query(const Query& query) {
  if (query.items.empty()) {
    throw UsageError{
        "the query has no items, and would match nothing; Query::all() matches every event"};
  }
  check_count(query.items.size(), max_query_items, "items");
  for (const QueryItem& item : query.items) {
    check_count(item.types.size(), max_types_of_item, "types in an item");
    check_count(item.tags.size(), max_tags_of_item, "tags in an item");
    for (const std::string& type : item.types) {
      if (is_valid_event_name(type)) continue;
      throw UsageError{"'" + type.substr(0, 128) + "' in a query can't be the name of an event"};
    }
    for (const Tag& tag : item.tags) {
      if (tag.name().empty()) throw UsageError{"a tag in a query is empty: was it moved from?"};
    }
  }
}

void check_condition(const AppendCondition& condition) {
  check_query(condition.query);
  if (condition.after) return;
  for (const QueryItem& item : condition.query.items) {
    if (!item.tags.empty()) continue;
    throw UsageError{
        "the condition has an item without tags and no position: all of history would be searched; "
        "give it a tag, or the position after which nothing may match"};
  }
}

bool has_tag(const StoredEvent& event, const Tag& tag) noexcept {
  if (event.stream == tag) return true;
  std::string_view left = event.tags;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(' '), left.size());
    if (left.substr(0, end) == tag.name()) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

bool matches(const QueryItem& item, const StoredEvent& event) noexcept {
  const bool is_of_type = item.types.empty() || std::find(item.types.begin(), item.types.end(),
                                                          event.type()) != item.types.end();
  return is_of_type && std::all_of(item.tags.begin(), item.tags.end(),
                                   [&](const Tag& tag) { return has_tag(event, tag); });
}

std::string join_tags(std::span<const Tag> tags, const StreamId& stream) {
  std::string text;
  for (auto tag = tags.begin(); tag != tags.end(); ++tag) {
    if (*tag == stream || std::find(tags.begin(), tag, *tag) != tag) continue;
    if (!text.empty()) text += ' ';
    text += tag->name();
  }
  return text;
}

void split_tags(std::string_view tags, FunctionRef<void(std::string_view)> f) {
  while (!tags.empty()) {
    const std::size_t end = std::min(tags.find(' '), tags.size());
    f(tags.substr(0, end));
    tags.remove_prefix(std::min(end + 1, tags.size()));
  }
}

}  // namespace stela
