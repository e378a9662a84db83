// Text for people: what is safe on a terminal, and values with their units.
#pragma once

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// `text` with everything visible that a terminal would obey: control characters, bytes that aren't
/// UTF-8, and what turns the direction of writing, each as an escape: "\x1b", "\u202e". Line breaks
/// too.
std::string in_one_line(std::string_view text);
/// As in_one_line, but keeps line breaks and tabs.
std::string in_lines(std::string_view text);

/// `text` as one word for a shell, in quotes if it needs them.
std::string in_shell(std::string_view text);

/// `text` with the passwords of URLs, and of parameters named password, as "***".
std::string without_passwords(std::string_view text);

/// JSON that means the same, with what a terminal would obey as \u escapes. `json` must be JSON
/// without line breaks between its tokens.
std::string safe_json(std::string_view json);
/// JSON spread over lines, two blanks a level. Numbers stay as they are written.
std::string indented_json(std::string_view json);

/// How many columns it takes on a terminal; for text without control characters.
std::size_t width_of(std::string_view text);
/// The longest beginning that fits, the last column a "…" if something was cut off.
std::string cut_to(std::string_view text, std::size_t width);

/// "850 µs", "12 ms", "3.2 s", "5 min 12 s", "3 h 20 min", "4 d 2 h".
std::string in_words(std::chrono::microseconds duration);
/// "512 B", "1.5 KiB", "20.0 MiB".
std::string in_bytes(std::int64_t bytes);
/// "1,234,567".
std::string in_digits(std::int64_t number);
/// "1 event", "2 events", "1 batch", "1,234 batches".
std::string counted(std::int64_t number, std::string_view noun);
/// What an enum is called; empty if it is unset.
template <class Enum>
std::string word_of(const std::optional<Enum>& value) {
  return value ? std::string{to_string(*value)} : std::string{};
}

/// "15s", "500ms", "2m", "1h", "7d". Nothing if it isn't one: a number needs its unit.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
/// What a duration looks like, for messages.
inline constexpr std::string_view a_duration{
    "a time with its unit, such as 500ms, 7s, 7m, 7h or 7d"};
/// "--older-than is a time with its unit, such as …, not '7'", or "… is at most a century, …".
std::string not_a_duration(std::string_view what, std::string_view text);

}  // namespace stela::tool
