#include <stela/framework/detail/tag_facts.hpp>

#include <algorithm>
#include <tuple>

namespace stela {
namespace {

/// "student, several of course", or "none".
template <class List>
std::string listed(const List& categories) {
  std::string text;
  for (const auto& one : categories) {
    text += text.empty() ? "" : ", ";
    text += one.several ? "several of " : "";
    text += one.category;
  }
  return text.empty() ? "none" : text;
}

/// True if a type that declares these still carries the tags of `fact`.
bool keeps(std::span<const TagDeclaration> declared, const TagFact& fact) {
  return std::any_of(declared.begin(), declared.end(), [&](const TagDeclaration& one) {
    return one.category == fact.category && (one.several || !fact.several);
  });
}

/// If there may be several tags, they are listed, because the stream may be one of them.
bool carries(const NewEvent& event, const StreamId& stream, const TagFact& fact) {
  return (!fact.several && stream.category() == fact.category) ||
         std::any_of(event.tags.begin(), event.tags.end(),
                     [&](const Tag& tag) { return tag.category() == fact.category; });
}

}  // namespace

void TagFacts::add(TagFact fact) {
  auto& known = by_type_[fact.type];
  std::erase_if(known, [&](const TagFact& one) { return one.category == fact.category; });
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
    if (keeps(declared, fact)) continue;
    throw UsageError{"events of type '" + std::string{type} + "' carry tags in this database (" +
                     listed(known) + ") that this program doesn't declare (" + listed(declared) +
                     "); run the version that does, or give the category up: stela tags forget"};
  }
  std::vector<TagFact> missing;
  for (const TagDeclaration& one : declared) {
    TagFact fact{std::string{type}, std::string{one.category}, one.always, one.several,
                 from_now_on};
    if (const TagFact* const before = find(type, one.category)) {
      if (before->several || !one.several) fact.since = before->since;
      fact.always = before->always && one.always;
      fact.several = before->several || one.several;
      if (fact.always == before->always && fact.several == before->several) continue;
    }
    missing.push_back(std::move(fact));
  }
  return missing;
}

void TagFacts::check_carries(const NewEvent& event, const StreamId& stream) const {
  for (const TagFact& fact : of(event.type)) {
    if (!fact.always || carries(event, stream, fact)) continue;
    throw UsageError{
        "every event of type '" + std::string{event.type} + "' in this database has a tag of " +
        "category '" + fact.category + "', and this one has none; add it" +
        (fact.several ? ", and name its stream as well if that is one of several" : "")};
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
