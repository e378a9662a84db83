#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela {
namespace {

/// The event store's own event. It can't be appended as an event of unknown type.
constexpr std::string_view forgotten_type = "stela.forgotten";

void check_tags_of(const NewEvent& event) {
  if (event.tags.size() > max_tags_of_event) {
    throw UsageError{std::string{event.type} + ": an event has at most " +
                     std::to_string(max_tags_of_event) + " tags, and this one has " +
                     std::to_string(event.tags.size())};
  }
  for (const Tag& tag : event.tags) {
    if (tag.name().empty()) throw UsageError{"a tag is empty: was it moved from?"};
  }
}

void check_condition_is_of(const AppendCondition& condition, const Conventions& conventions) {
  if (!detail::are_different_stores(condition.store, conventions.store)) return;
  throw UsageError{"the condition of an append was read in " +
                   detail::name_both(*condition.store, *conventions.store, ", and appends to ") +
                   "; read it in the store that appends"};
}

}  // namespace

void check_append(const AppendRequest& request, const Conventions& conventions) {
  if (request.context.is_replaying || is_replaying()) {
    throw UsageError{"an append inside a replay; a handler that is replayed only projects"};
  }
  metadata::check(request.context);
  if (request.append_id.size() > max_append_id_size) {
    throw UsageError{"an append id is at most 128 bytes long"};
  }
  if (!json::is_utf8(request.append_id) || request.append_id.find('\0') != std::string_view::npos) {
    throw UsageError{"an append id is text in UTF-8, without a zero byte"};
  }
  if (request.condition != nullptr) {
    check_condition(*request.condition);
    check_condition_is_of(*request.condition, conventions);
  }
  for (const StreamAppend& append : request.streams) {
    if (append.stream.name().empty()) {
      throw UsageError{"the stream id is empty: was it moved from?"};
    }
    for (const NewEvent& event : append.events) {
      if (!is_valid_event_name(event.type) || event.schema_version < 1) {
        throw UsageError{"'" + std::string{event.type.substr(0, 128)} + "' v" +
                         std::to_string(event.schema_version) +
                         " can't be an event: a name is 1 to 128 characters, words of letters, "
                         "digits, '_' and '-' separated by dots; a version counts from 1"};
      }
      if (event.type == forgotten_type && !event.declared) {
        throw UsageError{"'" + std::string{event.type} +
                         "' is Stela's own event: forget a person with stela::forget"};
      }
      check_tags_of(event);
      if (event.context != nullptr) metadata::check(*event.context);
      if (event.payload.size() > codec::max_payload_size) {
        throw UsageError{std::string{event.type} + ": its payload is larger than 64 MiB"};
      }
    }
  }
}

std::string detail::name_both(const StoreIdentity& right, const StoreIdentity& wrong,
                              const std::string& between) {
  if (right.place != wrong.place) return right.place + between + wrong.place;
  return right.place + " (" + right.id.to_string() + ')' + between + wrong.place + " (" +
         wrong.id.to_string() + ')';
}

void repeat_append(const AppendRequest& request, AppendedStreams appended, AppendResult& result) {
  bool has_events = false;
  for (const StreamAppend& append : request.streams) {
    AppendedEvents& there = appended[append.stream.name()];
    result.versions.emplace_back(there.version);
    there.count -= std::ssize(append.events);
    has_events |= !append.events.empty();
  }
  const auto is_even = [](const auto& stream) { return stream.second.count == 0; };
  if (!has_events || std::ranges::all_of(appended, is_even)) return;
  throw UsageError{"append id '" + std::string{request.append_id} +
                   "' was used before, for an append of other events"};
}

}  // namespace stela
