#include "database/reserved_names.hpp"

#include <algorithm>
#include <array>

namespace stela::database {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool is_reserved_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> prefixes{"stela_", "outbox_", "inbox_", "projection_"};
  const auto is_begin_of = [&](std::string_view begin) {
    return std::equal(
        begin.begin(), begin.end(), name.begin(),
        name.begin() + static_cast<std::ptrdiff_t>(std::min(begin.size(), name.size())),
        [](char a, char b) { return a == lower(b); });
  };
  constexpr std::string_view projections = "projections";
  return std::any_of(prefixes.begin(), prefixes.end(), is_begin_of) ||
         (name.size() == projections.size() && is_begin_of(projections));
}

}  // namespace stela::database
