#include "event_text.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// DecodeError unless the text is one JSON value.
void check_json(std::string_view text) {
  json::Reader reader{text};
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const char first = begin == std::string_view::npos ? '\0' : text[begin];
  if (first == '{') {
    reader.open_object();
    reader.close();
  } else if (first == '[') {
    reader.open_array();
    reader.close();
  } else if (first == '"') {
    reader.get_string();
  } else {
    reader.get_raw();
  }
  reader.finish();
}

}  // namespace

bool is_json(std::string_view text) try {
  check_json(text);
  return true;
} catch (const codec::DecodeError&) {
  return false;
}

std::string minified(std::string_view text) {
  check_json(text);
  std::string out;
  out.reserve(text.size());
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      out += c;
      if (c == '\\') out += text[++i];
      in_text = c != '"';
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      out += c;
      in_text = c == '"';
    }
  }
  return out;
}

std::string payload_in_line(const StoredEvent& event, Codec codec) {
  if (codec == Codec::json) return in_one_line(event.payload);
  return in_bytes(static_cast<std::int64_t>(event.payload.size())) + " of binary";
}

namespace {

/// "+02:00", "-0530", "+02". Empty if it isn't an offset.
std::optional<std::chrono::minutes> parse_offset(std::string_view text) {
  std::string digits{text.substr(1)};
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  if (digits.size() == 2) digits += "00";
  const bool are_digits =
      digits.size() == 4 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!are_digits) return std::nullopt;
  const int number = std::stoi(digits);
  if (number / 100 > 23 || number % 100 > 59) return std::nullopt;
  const std::chrono::minutes offset{number / 100 * 60 + number % 100};
  return text.front() == '-' ? -offset : offset;
}

}  // namespace

std::optional<Timestamp> parse_date_or_time(std::string_view text) {
  constexpr std::size_t date_size = std::string_view{"2026-11-23"}.size();
  if (text.size() < date_size) return std::nullopt;
  std::string_view clock = text.substr(date_size);
  std::chrono::minutes offset{0};
  if (const std::size_t sign = clock.find_first_of("+-"); sign != std::string_view::npos) {
    const auto parsed = parse_offset(clock.substr(sign));
    if (!parsed) return std::nullopt;
    offset = *parsed;
    clock = clock.substr(0, sign);
  } else if (clock.ends_with('Z')) {
    clock.remove_suffix(1);
    if (clock.empty()) return std::nullopt;
  }
  std::string full{clock.empty() ? "T00:00:00" : clock};
  if (full.front() == ' ') full.front() = 'T';
  if (full.size() == std::string_view{"T10:00"}.size()) full += ":00";
  const auto time = parse_timestamp(std::string{text.substr(0, date_size)} + full + "Z");
  if (!time) return std::nullopt;
  return *time - offset;
}

Timestamp to_time(std::string_view text, std::string_view what) {
  if (const auto time = parse_date_or_time(text)) return *time;
  if (const auto ago = parse_duration(text)) {
    return system_clock().now() - *ago;
  }
  throw Misuse{std::string{what} +
               " is a time such as 2026-11-21T11:34:00Z, 2026-11-21T13:34+02:00 or 2026-11-21 (in "
               "UTC where there is no offset), or how long ago, with its unit: 15m; not '" +
               in_one_line(text) + "'"};
}

Moment to_moment(std::string_view text, std::string_view what) {
  const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return stela::as_of(to_time(text, what));
  return at_version(
      StreamVersion{to_integer(text, what, {1, std::numeric_limits<std::int64_t>::max()})});
}

std::string short_time(Timestamp time) {
  std::string text = to_string(time).substr(0, 19);
  text[10] = ' ';
  return text += 'Z';
}

}  // namespace stela::tool
