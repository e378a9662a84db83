// Text that every engine, and JSON, can hold: UTF-8 without zero bytes. Foreign text may be
// anything.
#pragma once

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace stela::database {

inline bool is_storable(std::string_view text) noexcept {
  return text.find('\0') == std::string_view::npos && json::is_utf8(text);
}

/// The text with `?` in place of bytes that can't be held.
inline std::string made_storable(std::string_view text) {
  const bool is_valid = json::is_utf8(text);
  std::string made{text};
  std::replace_if(
      made.begin(), made.end(), [&](char c) { return c == '\0' || (c < 0 && !is_valid); }, '?');
  return made;
}

}  // namespace stela::database
