#pragma once
// Parses the lines of 'events append --stdin'.
#include <stela/framework/query.hpp>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

constexpr int largest_schema_version = std::numeric_limits<std::int32_t>::max();

/// One event as written in the input.
struct Draft {
  std::string stream = {};
  std::string type = {};
  int version = 1;
  bool publish = false;
  ExpectedVersion expected = ExpectedVersion::any();
  std::string data = {};
  Context context = {};
  EventId id = {};
  std::vector<Tag> tags = {};
};

/// A line with several events.
struct DraftedAppend {
  std::vector<Draft> events = {};
  std::optional<AppendCondition> condition = {};
  std::string id = {};
  std::map<std::string, ExpectedVersion> expected = {};
};

/// True if the line has several events.
bool has_events(const std::string& line);

/// Parses a line with one event. `defaults` has the fields that flags set for all.
Draft parse_event_line(const std::string& line, const Draft& defaults);

/// Parses a line with several events.
DraftedAppend parse_append_line(const std::string& line, const Draft& defaults);

/// `what` names the field or flag in the error.
EventId parse_event_id(std::string_view text, std::string_view what);

}  // namespace stela::tool
