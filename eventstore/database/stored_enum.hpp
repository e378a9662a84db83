// Enums that are stored as words.
#pragma once

#include <initializer_list>
#include <string_view>

namespace stela::database {

/// The value in `known` whose `to_string` is `text`; otherwise `Enum::unrecognized`, because a
/// newer Stela may have stored the word.
template <class Enum>
Enum parse_stored(std::initializer_list<Enum> known, std::string_view text) noexcept {
  for (const Enum one : known) {
    if (to_string(one) == text) return one;
  }
  return Enum::unrecognized;
}

}  // namespace stela::database
