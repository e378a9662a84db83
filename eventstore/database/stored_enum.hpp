// Enums that stand in the database as words.
#pragma once

#include <initializer_list>
#include <string_view>

namespace stela::database {

/// The one of `known` whose `to_string` is `text`; otherwise `Enum::unrecognized`, as a newer
/// version of Stela may have stored a word that this one doesn't have.
template <class Enum>
Enum parse_stored(std::initializer_list<Enum> known, std::string_view text) noexcept {
  for (const Enum one : known) {
    if (to_string(one) == text) return one;
  }
  return Enum::unrecognized;
}

}  // namespace stela::database
