#include "cli/text.hpp"

#include <wchar.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;
  bool valid = false;
};

/// Decodes the first code point of `text`; if it is invalid, one byte.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (size == 0 || lead > 0xf4 || text.size() < size) return {lead, 1, false};
  char32_t value = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {lead, 1, false};
  return {value, size, true};
}

bool turns_direction(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

/// In milliseconds, without a limit. Empty if `text` isn't a number with a unit.
std::optional<double> milliseconds_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  if (suffix == "ms") return value;
  if (suffix == "s") return value * 1e3;
  if (suffix == "m" || suffix == "min") return value * 60e3;
  if (suffix == "h") return value * 3'600e3;
  if (suffix == "d") return value * 86'400e3;
  return std::nullopt;
}

constexpr double a_century = 3.2e12;

constexpr std::string_view hidden = "***";

/// Hides the password of the URL whose user begins at `begin`. It ends at the line's last '@',
/// because a password may contain anything but a line break.
void hide_password(std::string& text, std::size_t begin) {
  const std::size_t line = std::min(text.find('\n', begin), text.size());
  const std::size_t colon = text.find(':', begin);
  if (colon >= line) return;
  std::size_t end = text.rfind('@', line);
  if (end == std::string::npos || end < colon) {
    // The rest is a port, or a password whose host is missing.
    end = std::min(text.find_first_of("/,?", colon), line);
    const std::string_view port = std::string_view{text}.substr(colon + 1, end - colon - 1);
    if (port.find_first_not_of("0123456789") == std::string_view::npos) return;
  }
  text.replace(colon + 1, end - colon - 1, hidden);
}

/// The position from which a NATS server's URL without a scheme may contain a password, or its size
/// if it contains none. The URL may be part of a message: "one:4222:".
std::size_t nats_secret_in(std::string_view url) {
  if (url.find_first_of("@%") != std::string_view::npos) return 0;
  const std::size_t colon = url.find(':', url.starts_with('[') ? url.find(']') : 0);
  if (colon == std::string_view::npos) return url.size();
  std::string_view port = url.substr(colon + 1);
  port = port.substr(0, port.find_last_not_of(":;./)") + 1);
  const bool is_port = port.find_first_not_of("0123456789") == std::string_view::npos;
  return is_port ? url.size() : colon + 1;
}

/// Hides passwords in the list of NATS servers whose first host begins at `begin`.
void hide_nats_passwords(std::string& text, std::size_t begin) {
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find_first_of(" '\"\n,", begin), text.size());
    const std::string_view url = std::string_view{text}.substr(begin, end - begin);
    // A URL with a scheme begins a list of its own.
    if (url.find("://") != std::string_view::npos) return;
    const std::size_t secret = nats_secret_in(url);
    more = end < text.size() && text[end] == ',';
    const std::size_t size = end - begin - secret;
    if (size > 0) text.replace(begin + secret, size, hidden);
    begin = size > 0 ? begin + secret + hidden.size() + 1 : end + 1;
  }
}

/// Hides the value after the word before `begin`, if it has one: "=…", " = '…'".
void hide_value(std::string& text, std::size_t begin) {
  begin = text.find_first_not_of(' ', begin);
  if (begin == std::string::npos || text[begin] != '=') return;
  begin = std::min(text.find_first_not_of(' ', begin + 1), text.size());
  // Quoted as in libpq, or unquoted.
  const bool is_quoted = text.substr(begin, 1) == "'";
  const std::string_view ends = is_quoted ? "'\n" : "& \n'\"";
  std::size_t end = begin + (is_quoted ? 1 : 0);
  for (; end < text.size() && ends.find(text[end]) == std::string_view::npos; ++end) {
    if (text[end] == '\\') ++end;
  }
  end = std::min(end + (is_quoted ? 1 : 0), text.size());
  text.replace(begin, end - begin, hidden);
}

/// True if a terminal may obey the character, or if it breaks a line.
bool is_obeyed(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || turns_direction(c);
}

std::string formatted(const char* format, auto... values) {
  std::array<char, 96> text{};
  const int size = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), static_cast<std::size_t>(size)};
}

template <class Keep>
std::string escaped(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    if (point.valid && (!is_obeyed(point.value) || keep(point.value))) {
      out.append(text.substr(0, point.size));
    } else if (!point.valid || point.value < 0x80) {
      out += formatted("\\x%02x", static_cast<unsigned>(point.value));
    } else {
      out += formatted("\\u%04x", static_cast<unsigned>(point.value));
    }
    text.remove_prefix(point.size);
  }
  return out;
}

std::string two_units(std::int64_t big, const char* big_unit, std::int64_t small,
                      const char* small_unit) {
  std::string text = std::to_string(big) + " " + big_unit;
  if (small > 0) text += " " + std::to_string(small) + " " + small_unit;
  return text;
}

}  // namespace

std::string in_one_line(std::string_view text) {
  return escaped(text, [](char32_t) { return false; });
}

std::string in_lines(std::string_view text) {
  return escaped(text, [](char32_t c) { return c == '\n' || c == '\t'; });
}

std::string safe_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const CodePoint point = decode(json);
    if (point.valid && !is_obeyed(point.value)) {
      out.append(json.substr(0, point.size));
    } else {
      // JSON has such characters only inside texts, where an escape can replace them.
      out += formatted("\\u%04x", point.valid ? static_cast<unsigned>(point.value) : 0xfffdU);
    }
    json.remove_prefix(point.size);
  }
  return out;
}

std::string indented_json(std::string_view json) {
  std::string out;
  std::size_t depth = 0;
  bool in_text = false;
  const auto new_line = [&] { out.append("\n").append(2 * depth, ' '); };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) out += json[++i];
      in_text = c != '"';
    } else if (c == '{' || c == '[') {
      out += c;
      const bool empty = i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']');
      if (empty) {
        out += json[++i];
      } else {
        ++depth;
        new_line();
      }
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      new_line();
      out += c;
    } else if (c == ',') {
      out += c;
      new_line();
    } else if (c == ':') {
      out += ": ";
    } else {
      in_text = c == '"';
      out += c;
    }
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const int columns = wcwidth(static_cast<wchar_t>(point.value));
    width += columns < 0 ? 1U : static_cast<std::size_t>(columns);
    text.remove_prefix(point.size);
  }
  return width;
}

std::string cut_to(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string{text};
  if (width == 0) return {};
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const std::size_t columns = width_of(text.substr(0, point.size));
    if (used + columns > width - 1) break;
    out.append(text.substr(0, point.size));
    used += columns;
    text.remove_prefix(point.size);
  }
  return out + "…";
}

std::string in_words(std::chrono::microseconds duration) {
  const std::int64_t us = duration.count();
  if (us < 0) return std::string{"-"}.append(in_words(-duration));
  if (us < 1'000) return std::to_string(us) + " µs";
  if (us < 10'000) return formatted("%.1f ms", static_cast<double>(us) / 1e3);
  if (us < 1'000'000) return std::to_string(us / 1'000) + " ms";
  const std::int64_t tenths = us / 100'000;
  if (us < 60'000'000) return formatted("%.1f s", static_cast<double>(tenths) / 10);
  const std::int64_t seconds = us / 1'000'000;
  if (seconds < 3'600) return two_units(seconds / 60, "min", seconds % 60, "s");
  if (seconds < 86'400) return two_units(seconds / 3'600, "h", seconds / 60 % 60, "min");
  return two_units(seconds / 86'400, "d", seconds / 3'600 % 24, "h");
}

std::string in_bytes(std::int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return formatted("%.1f %s", value, units[unit]);
}

std::string in_digits(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(at), ',');
  }
  return digits;
}

std::string counted(std::int64_t number, std::string_view noun) {
  std::string text = in_digits(number).append(" ").append(noun);
  if (number == 1) return text;
  return text += noun.ends_with("ch") ? "es" : "s";
}

std::string not_a_duration(std::string_view what, std::string_view text) {
  const bool is_too_long = milliseconds_of(text).has_value();
  return std::string{what}
      .append(" is ")
      .append(is_too_long ? "at most a century" : a_duration)
      .append(", not '" + in_one_line(text) + "'");
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto value = milliseconds_of(text);
  // A longer duration is a mistake, and would overflow elsewhere.
  if (!value || *value > a_century) return std::nullopt;
  return std::chrono::milliseconds{std::llround(*value)};
}

std::string in_shell(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+,=%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) {
    return std::string{text};
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + '\'';
}

std::string without_passwords(std::string_view text) {
  std::string shown{text};
  for (const std::string_view scheme : {"postgresql://", "postgres://"}) {
    for (std::size_t at = shown.find(scheme); at != std::string::npos;
         at = shown.find(scheme, at + 1)) {
      hide_password(shown, at + scheme.size());
    }
  }
  for (const std::string_view scheme : {"nats://", "tls://"}) {
    for (std::size_t at = shown.find(scheme); at != std::string::npos;
         at = shown.find(scheme, at + 1)) {
      hide_nats_passwords(shown, at + scheme.size());
    }
  }
  constexpr std::string_view parameter = "password";
  for (std::size_t at = shown.find(parameter); at != std::string::npos;
       at = shown.find(parameter, at + 1)) {
    hide_value(shown, at + parameter.size());
  }
  return shown;
}

}  // namespace stela::tool
