#include <stela/eventstore/detail/owned_append.hpp>

#include <list>
#include <optional>
#include <string>
#include <vector>

namespace stela {

/// Uses lists, because their elements never move.
struct OwnedAppend::Parts {
  explicit Parts(const AppendRequest& from);

  std::string_view keep(std::string_view text) {
    return text.empty() ? text : texts.emplace_back(text);
  }
  NewEvent keep(const NewEvent& event);

  Context context;
  std::list<std::string> texts;
  std::list<StreamId> ids;
  std::list<std::vector<NewEvent>> events;
  std::list<std::vector<Tag>> tags;
  std::list<std::vector<KeyId>> keys;
  std::list<std::vector<TagDeclaration>> declared;
  std::list<Context> own_contexts;
  std::vector<StreamAppend> streams;
  std::optional<AppendCondition> condition;
  std::optional<AppendRequest> request;
};

NewEvent OwnedAppend::Parts::keep(const NewEvent& event) {
  NewEvent kept = event;
  kept.type = keep(event.type);
  kept.payload = keep(event.payload);
  if (!event.tags.empty()) kept.tags = tags.emplace_back(event.tags.begin(), event.tags.end());
  if (!event.keys.empty()) kept.keys = keys.emplace_back(event.keys.begin(), event.keys.end());
  if (event.declared) {
    auto& all = declared.emplace_back(event.declared->begin(), event.declared->end());
    for (TagDeclaration& one : all) one.category = keep(one.category);
    kept.declared = all;
  }
  if (event.context != nullptr) kept.context = &own_contexts.emplace_back(*event.context);
  return kept;
}

OwnedAppend::Parts::Parts(const AppendRequest& from) : context{from.context} {
  for (const StreamAppend& append : from.streams) {
    auto& kept = events.emplace_back();
    kept.reserve(append.events.size());
    for (const NewEvent& event : append.events) kept.push_back(keep(event));
    streams.push_back({ids.emplace_back(append.stream), append.expected, kept});
  }
  if (from.condition != nullptr) condition = *from.condition;
  request.emplace(AppendRequest{.streams = streams,
                                .context = context,
                                .append_id = keep(from.append_id),
                                .condition = condition ? &*condition : nullptr});
}

OwnedAppend::OwnedAppend(const AppendRequest& request)
    : parts_{std::make_unique<const Parts>(request)} {}
OwnedAppend::~OwnedAppend() = default;
OwnedAppend::OwnedAppend(OwnedAppend&&) noexcept = default;
OwnedAppend& OwnedAppend::operator=(OwnedAppend&&) noexcept = default;

const AppendRequest& OwnedAppend::request() const noexcept {
  return *parts_->request;
}

}  // namespace stela
