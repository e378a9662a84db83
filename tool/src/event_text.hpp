// Events as text, and JSON from the user.
#pragma once

#include "cli/arguments.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/repository.hpp>
#include <stela/framework/stored_event.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// The payload in one line: JSON unchanged, other bytes as their count.
std::string payload_in_line(const StoredEvent& event, Codec codec);

bool is_json(std::string_view text);

/// `text` without blanks between its tokens. codec::DecodeError unless it is one JSON value.
std::string minified(std::string_view text);

/// A time ("2026-11-23T10:00:00Z", "2026-11-23T10:00+02:00") or a date, in UTC without an offset.
/// Empty for any other text.
std::optional<Timestamp> parse_date_or_time(std::string_view text);

/// As above, or an age: "15m". Misuse, naming `what`, for any other text.
Timestamp to_time(std::string_view text, std::string_view what);

/// A version or a time. Misuse for any other text.
Moment to_moment(std::string_view text, std::string_view what);

/// "2026-11-21 11:34:00Z": to the second, in UTC.
std::string short_time(Timestamp time);

}  // namespace stela::tool
