#include "description/eventstore.hpp"

#include "event_text.hpp"

#include <stela/framework/codec/detail/base64.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

namespace stela::tool {
namespace {

/// The actor who recorded the event.
std::string actor_of(const ShownEvent& shown) try {
  return shown.event.context().actor;
} catch (const CorruptEvent&) {
  return "?";
}

std::optional<std::string> cause_of(const ShownEvent& shown) {
  const EventId& cause = shown.event.causation_id;
  return cause.is_nil() ? std::nullopt : std::optional{cause.to_string()};
}

std::optional<Json> metadata_of(const ShownEvent& shown) {
  const std::string_view text = shown.event.metadata;
  return text.empty() || !is_json(text) ? std::nullopt : std::optional{Json{minified(text)}};
}

bool has_json(const ShownEvent& shown) {
  return shown.codec == Codec::json && is_json(shown.event.payload);
}
std::optional<Json> payload_shown(const ShownEvent& shown) {
  return has_json(shown) ? std::optional{Json{minified(shown.event.payload)}} : std::nullopt;
}
std::optional<std::string> bytes_of(const ShownEvent& shown) {
  if (has_json(shown)) return std::nullopt;
  std::string text;
  base64::append(text, shown.event.payload);
  return text;
}

Json tags_shown(const ShownEvent& shown) {
  std::string array = "[";
  split_tags(shown.event.tags, [&](std::string_view tag) {
    if (array.size() > 1) array += ',';
    json::append_string(array, tag);
  });
  return Json{array + ']'};
}

std::optional<std::chrono::microseconds> later_by(const ShownEvent& shown) {
  return shown.before ? std::optional{shown.event.recorded_at - *shown.before} : std::nullopt;
}

/// A member or method of the event itself.
template <auto get>
constexpr auto event_field(std::string_view name, const Look& look = {}) {
  return field<[](const ShownEvent& shown) { return std::invoke(get, shown.event); }>(name, look);
}

using E = StoredEvent;
constexpr Field<ShownEvent> event_fields[] = {
    event_field<&E::sequence>("sequence"),
    field<[](const ShownEvent& shown) { return shown.event.stream.name(); }>("stream"),
    event_field<&E::version>("stream_version", {.title = "version"}),
    event_field<&E::id>("id"),
    event_field<&E::type>("type"),
    field<tags_shown>("tags"),
    event_field<&E::schema_version>("schema_version"),
    event_field<&E::publishes>("publishes"),
    event_field<&E::recorded_at>("recorded_at"),
    event_field<&E::correlation_id>("correlation_id"),
    field<cause_of>("causation_id"),
    field<metadata_of>("metadata"),
    field<payload_shown>("payload"),
    field<bytes_of>("payload_base64"),
    field<later_by>("later_by", {.is_text_only = true}),
    field<[](const ShownEvent& shown) { return std::string{shown.event.tags}; }>(
        "tag_line", {.title = "tags", .most = 40, .is_text_only = true}),
    field<actor_of>("actor", {.is_text_only = true}),
    field<[](const ShownEvent& shown) { return payload_in_line(shown.event, shown.codec); }>(
        "line", {.title = "payload", .is_text_only = true}),
};

constexpr Field<KindCount> kind_fields[] = {
    field<&KindCount::category>("category"),
    field<&KindCount::type>("type"),
    field<&KindCount::version>("schema_version", {.title = "v"}),
    field<&KindCount::publishes>("publishes", {.title = "published"}),
    field<&KindCount::events>("events", {.kind = Kind::count}),
    field<&KindCount::payload_bytes>("payload_bytes", {.title = "payload", .kind = Kind::bytes}),
    field<&KindCount::first>("first"),
    field<&KindCount::last>("last"),
};

constexpr Field<TagEntry> tag_fields[] = {
    field<&TagEntry::tag>("tag"),
    field<&TagEntry::first>("first", {.title = "first event"}),
};

constexpr Field<TagFact> tag_type_fields[] = {
    field<&TagFact::type>("type"),
    field<&TagFact::category>("category"),
    field<&TagFact::always>("always"),
    field<&TagFact::several>("several"),
    field<&TagFact::since>("from_sequence", {.title = "since"}),
};

constexpr Field<StreamEntry> stream_fields[] = {
    field<&StreamEntry::stream>("stream"),
    field<&StreamEntry::version>("stream_version", {.title = "version", .kind = Kind::count}),
    field<&StreamEntry::last>("last_sequence", {.title = "last event"}),
    field<&StreamEntry::changed_at>("changed_at"),
};

constexpr Field<SnapshotEntry> snapshot_fields[] = {
    field<&SnapshotEntry::stream>("stream"),
    field<&SnapshotEntry::version>("stream_version", {.title = "version", .kind = Kind::count}),
    field<&SnapshotEntry::sequence>("sequence"),
    field<&SnapshotEntry::state_version>("state_version"),
    field<&SnapshotEntry::bytes>("bytes", {.title = "size", .kind = Kind::bytes}),
    field<&SnapshotEntry::taken_at>("taken_at"),
};

constexpr Field<Problem> problem_fields[] = {
    field<&Problem::check>("check"),
    field<&Problem::where>("subject", {.kind = Kind::untrusted}),
    field<&Problem::what>("sentence", {.kind = Kind::untrusted}),
    field<&Problem::advice>("remedy"),
};

constexpr Field<UncheckedTable> unchecked_fields[] = {
    field<&UncheckedTable::table>("table", {.kind = Kind::untrusted}),
    field<&UncheckedTable::why>("why", {.kind = Kind::untrusted}),
};
constexpr Description<UncheckedTable> unchecked{unchecked_fields};

constexpr Field<VerifyResult> verified_fields[] = {
    field<&VerifyResult::events>("events"),
    field<&VerifyResult::problems>("problems"),
    field<&VerifyResult::finished>("finished"),
    field<&VerifyResult::is_sound>("sound"),
    field<[](const VerifyResult& result) { return json_list(unchecked, result.unchecked); }>(
        "unchecked"),
};

}  // namespace

namespace description {

constexpr Description<ShownEvent> event{
    event_fields, {.table = "sequence recorded_at stream stream_version type line"}};
constexpr Description<ShownEvent> event_with_tags{
    event_fields, {.table = "sequence recorded_at stream stream_version type tag_line line"}};
constexpr Description<ShownEvent> event_of_stream{
    event_fields,
    {.table = "stream_version recorded_at later_by sequence type tag_line actor line"}};
constexpr Description<KindCount> kind_of_event{
    kind_fields,
    {.table = "category type schema_version publishes events payload_bytes first last"}};
constexpr Description<TagEntry> tag{tag_fields, {.table = "tag first"}};
constexpr Description<TagFact> tag_type{tag_type_fields,
                                        {.table = "type category always several from_sequence"}};
constexpr Description<StreamEntry> stream{
    stream_fields, {.table = "stream stream_version last_sequence changed_at"}};
constexpr Description<SnapshotEntry> snapshot{
    snapshot_fields, {.table = "stream stream_version state_version bytes taken_at"}};
constexpr Description<Problem> problem{problem_fields};
constexpr Description<VerifyResult> verified{verified_fields};

}  // namespace description
}  // namespace stela::tool
