#include <stela/framework/tag_facts.hpp>

#include <algorithm>
#include <tuple>

namespace stela {
namespace {

/// "student, course", or "none".
template <class List>
std::string listed(const List& categories) {
  std::string text;
  for (const auto& one : categories) {
    text += text.empty() ? "" : ", ";
    text += one.category;
  }
  return text.empty() ? "none" : text;
}

template <class List>
bool has(const List& list, std::string_view category) {
  return std::any_of(list.begin(), list.end(),
                     [&](const auto& one) { return one.category == category; });
}

bool carries(const NewEvent& event, const StreamId& stream, std::string_view category) {
  return stream.category() == category ||
         std::any_of(event.tags.begin(), event.tags.end(),
                     [&](const Tag& tag) { return tag.category() == category; });
}

}  // namespace

void TagFacts::add(TagFact fact) {
  auto& known = by_type_[fact.type];
  known.push_back(std::move(fact));
}

std::vector<TagFact> TagFacts::list() const {
  std::vector<TagFact> all;
  for (const auto& [type, facts] : by_type_) all.insert(all.end(), facts.begin(), facts.end());
  std::sort(all.begin(), all.end(), [](const TagFact& a, const TagFact& b) {
    return std::tie(a.type, a.category) < std::tie(b.type, b.category);
  });
  return all;
}

const TagFact* TagFacts::find(std::string_view type, std::string_view category) const noexcept {
  for (const TagFact& fact : of(type)) {
    if (fact.category == category) return &fact;
  }
  return nullptr;
}

const std::vector<TagFact>& TagFacts::of(std::string_view type) const noexcept {
  static const std::vector<TagFact> none;
  const auto known = by_type_.find(type);
  return known != by_type_.end() ? known->second : none;
}

std::vector<TagFact> TagFacts::additions(std::string_view type,
                                         std::span<const TagDeclaration> declared) const {
  const std::vector<TagFact>& known = of(type);
  for (const TagFact& fact : known) {
    if (has(declared, fact.category)) continue;
    throw UsageError{"events of type '" + std::string{type} + "' carry tags in this database (" +
                     listed(known) + ") that this program doesn't declare (" + listed(declared) +
                     "); run the version that does, or give the category up: stela tags forget"};
  }
  std::vector<TagFact> missing;
  for (const TagDeclaration& one : declared) {
    if (has(known, one.category)) continue;
    missing.push_back({std::string{type}, std::string{one.category}, one.always, 0});
  }
  return missing;
}

void TagFacts::check_carries(const NewEvent& event, const StreamId& stream) const {
  for (const TagFact& fact : of(event.type)) {
    if (!fact.always || carries(event, stream, fact.category)) continue;
    throw UsageError{"every event of type '" + std::string{event.type} +
                     "' in this database has a tag of category '" + fact.category +
                     "', and this one has none; add it"};
  }
}

void throw_tags_missing(const TagNeed& need) {
  throw TagsMissing{"events of type '" + std::string{need.type} +
                    "' were appended before they had tags of category '" +
                    std::string{need.category} +
                    "'; a decision would miss them: tag them first, with 'tags add --type " +
                    std::string{need.type} + "' of your application's tool, or stela::add_tags"};
}

}  // namespace stela
