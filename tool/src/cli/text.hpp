// Text for people: safe for a terminal, with units for values.
#pragma once

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// `text` with everything that a terminal would obey as a visible escape: control characters and
/// line breaks, bytes that aren't UTF-8, and changes of the writing direction: "\x1b", "\u202e".
std::string in_one_line(std::string_view text);
/// As in_one_line, but keeps line breaks and tabs.
std::string in_lines(std::string_view text);

/// `text` as one word for a shell, in quotes if it needs them.
std::string in_shell(std::string_view text);

/// `text` with the passwords of URLs, and of parameters named password, as "***".
std::string without_passwords(std::string_view text);

/// Equivalent JSON, with everything that a terminal would obey as \u escapes. `json` must have no
/// line breaks between its tokens.
std::string safe_json(std::string_view json);
/// JSON over several lines, indented by two blanks per level. Numbers are unchanged.
std::string indented_json(std::string_view json);

/// Its width in columns on a terminal, for text without control characters.
std::size_t width_of(std::string_view text);
/// The longest prefix that fits. If text was cut off, the last column is a "…".
std::string cut_to(std::string_view text, std::size_t width);

/// "850 µs", "12 ms", "3.2 s", "5 min 12 s", "3 h 20 min", "4 d 2 h".
std::string in_words(std::chrono::microseconds duration);
/// "512 B", "1.5 KiB", "20.0 MiB".
std::string in_bytes(std::int64_t bytes);
/// "1,234,567".
std::string in_digits(std::int64_t number);
/// "1 event", "2 events", "1 batch", "1,234 batches".
std::string counted(std::int64_t number, std::string_view noun);
/// The name of an enumerator. Empty if the value is unset.
template <class Enum>
std::string word_of(const std::optional<Enum>& value) {
  return value ? std::string{to_string(*value)} : std::string{};
}

/// "15s", "500ms", "2m", "1h", "7d". Empty for other text: a number needs its unit.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
/// The form of a duration, for messages.
inline constexpr std::string_view a_duration{
    "a time with its unit, such as 500ms, 7s, 7m, 7h or 7d"};
/// "--older-than is a time with its unit, such as …, not '7'", or "… is at most a century, …".
std::string not_a_duration(std::string_view what, std::string_view text);

}  // namespace stela::tool
