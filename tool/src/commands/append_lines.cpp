#include "commands/append_lines.hpp"

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>

#include <array>
#include <set>

namespace stela::tool {
namespace {

/// Walks through the members of an object, and refuses duplicates.
class Members {
 public:
  explicit Members(json::Reader& reader) : reader_{reader} { reader_.open_object(); }
  /// Makes the next member current and sets its name. False at the end.
  bool next(std::string& name) {
    if (!reader_.next_member(name)) {
      reader_.close();
      return false;
    }
    if (!seen_.insert(name).second) reader_.fail("appears twice");
    return true;
  }

 private:
  json::Reader& reader_;
  std::set<std::string> seen_;
};

std::vector<Tag> parse_tags(json::Reader& reader) {
  std::vector<Tag> tags;
  reader.open_array();
  while (reader.next_element()) tags.push_back(Tag::parse(reader.get_string()));
  reader.close();
  return tags;
}

std::vector<std::string> parse_names(json::Reader& reader) {
  std::vector<std::string> names;
  reader.open_array();
  while (reader.next_element()) names.emplace_back(reader.get_string());
  reader.close();
  return names;
}

ExpectedVersion parse_expected(json::Reader& reader) {
  return ExpectedVersion::exactly(StreamVersion{reader.get_int64()});
}

void parse_headers(json::Reader& reader, Context& context) {
  Members members{reader};
  std::string name;
  while (members.next(name)) context.headers[name] = reader.get_string();
}

template <std::size_t N>
[[noreturn]] void refuse_field(std::string_view name,
                               const std::array<std::string_view, N>& known) {
  throw Misuse{"there is no field '" + in_one_line(name) + "'" + did_you_mean(name, known)};
}

/// Parses a field that events have in every kind of line. False if it isn't one.
bool parse_event_field(std::string_view name, json::Reader& reader, Draft& draft) {
  if (name == "stream") {
    draft.stream = reader.get_string();
  } else if (name == "type") {
    draft.type = reader.get_string();
  } else if (name == "schema_version" || name == "version") {
    const std::int64_t version = reader.get_int64();
    if (version < 1 || version > largest_schema_version) reader.fail("isn't a version");
    draft.version = static_cast<int>(version);
  } else if (name == "publish") {
    draft.publish = reader.get_bool();
  } else if (name == "data") {
    draft.data = reader.get_raw();
  } else if (name == "correlation_id" || name == "correlation") {
    draft.context.correlation_id = reader.get_string();
  } else if (name == "causation_id" || name == "causation") {
    draft.context.causation_id = parse_event_id(reader.get_string(), name);
  } else if (name == "actor") {
    draft.context.actor = reader.get_string();
  } else if (name == "tags") {
    draft.tags = parse_tags(reader);
  } else {
    return false;
  }
  return true;
}

void check_draft(const Draft& draft) {
  if (draft.data.empty()) throw Misuse{"the field data is missing"};
  if (draft.stream.empty()) throw Misuse{"the field stream is missing, and there is no --stream"};
  if (draft.type.empty()) throw Misuse{"the field type is missing, and there is no --type"};
}

Draft parse_event(json::Reader& reader, const Draft& defaults) {
  Draft draft = defaults;
  Members members{reader};
  std::string name;
  while (members.next(name)) {
    if (parse_event_field(name, reader, draft)) continue;
    if (name == "id") {
      draft.id = parse_event_id(reader.get_string(), "id");
    } else if (name == "headers") {
      parse_headers(reader, draft.context);
    } else {
      constexpr std::array<std::string_view, 11> known{
          "stream", "type",  "schema_version", "publish",        "data",   "tags",
          "id",     "actor", "causation_id",   "correlation_id", "headers"};
      refuse_field(name, known);
    }
  }
  check_draft(draft);
  return draft;
}

Query parse_query(json::Reader& reader) {
  Query query;
  reader.open_array();
  while (reader.next_element()) {
    QueryItem& item = query.items.emplace_back();
    Members members{reader};
    std::string name;
    while (members.next(name)) {
      if (name == "types") {
        item.types = parse_names(reader);
      } else if (name == "tags") {
        item.tags = parse_tags(reader);
      } else {
        constexpr std::array<std::string_view, 2> known{"types", "tags"};
        refuse_field(name, known);
      }
    }
  }
  reader.close();
  return query;
}

AppendCondition parse_condition(json::Reader& reader) {
  AppendCondition condition;
  Members members{reader};
  std::string name;
  while (members.next(name)) {
    if (name == "query") {
      condition.query = parse_query(reader);
    } else if (name == "after") {
      const std::int64_t after = reader.get_int64();
      if (after < 0) reader.fail("is a position, and not negative");
      condition.after = GlobalSequence{after};
    } else {
      constexpr std::array<std::string_view, 2> known{"query", "after"};
      refuse_field(name, known);
    }
  }
  if (condition.query.items.empty()) {
    throw Misuse{"a condition has a query with one item at least"};
  }
  return condition;
}

}  // namespace

bool has_events(const std::string& line) {
  json::Reader reader{line};
  reader.open_object();
  return reader.select("events");
}

Draft parse_event_line(const std::string& line, const Draft& defaults) {
  Draft draft = defaults;
  json::Reader reader{line};
  Members members{reader};
  std::string name;
  while (members.next(name)) {
    if (parse_event_field(name, reader, draft)) continue;
    if (name == "expected") {
      draft.expected = parse_expected(reader);
      continue;
    }
    constexpr std::array<std::string_view, 10> known{
        "stream", "type", "schema_version", "publish",      "expected",
        "data",   "tags", "actor",          "causation_id", "correlation_id"};
    refuse_field(name, known);
  }
  reader.finish();
  check_draft(draft);
  return draft;
}

DraftedAppend parse_append_line(const std::string& line, const Draft& defaults) {
  DraftedAppend append;
  json::Reader reader{line};
  Members members{reader};
  std::string name;
  while (members.next(name)) {
    if (name == "events") {
      reader.open_array();
      while (reader.next_element()) append.events.push_back(parse_event(reader, defaults));
      reader.close();
    } else if (name == "condition") {
      append.condition = parse_condition(reader);
    } else if (name == "id") {
      append.id = reader.get_string();
      if (append.id.empty()) reader.fail("is empty");
    } else if (name == "expected") {
      Members streams{reader};
      std::string stream;
      while (streams.next(stream)) append.expected.emplace(stream, parse_expected(reader));
    } else {
      constexpr std::array<std::string_view, 4> known{"events", "condition", "id", "expected"};
      refuse_field(name, known);
    }
  }
  reader.finish();
  return append;
}

EventId parse_event_id(std::string_view text, std::string_view what) {
  const auto id = Uuid::parse(text);
  if (!id) throw Misuse{std::string{what} + " is an event's id, a UUID"};
  return *id;
}

}  // namespace stela::tool
