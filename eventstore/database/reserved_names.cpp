#include "database/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace stela::database {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether `name` begins with `begin`, which is in lower case, ignoring case.
bool begins_with(std::string_view name, std::string_view begin) noexcept {
  return name.size() >= begin.size() && std::equal(begin.begin(), begin.end(), name.begin(),
                                                   [](char a, char b) { return a == lower(b); });
}

bool is_any_of(std::string_view name, std::span<const std::string_view> names) noexcept {
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
    return name.size() == one.size() && begins_with(name, one);
  });
}

}  // namespace

bool is_reserved_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> prefixes{"stela_", "outbox_", "inbox_", "projection_"};
  constexpr std::array<std::string_view, 1> names{"projections"};
  return is_any_of(name, names) ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return begins_with(name, prefix); });
}

bool is_stela_table(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 12> names{
      "append_ids", "event_kinds", "event_links", "event_links_through",
      "event_tags", "events",      "kind_blocks", "snapshots",
      "streams",    "tag_epoch",   "tag_index",   "tag_types"};
  return is_reserved_name(name) || is_any_of(name, names);
}

bool is_read_model_table(std::string_view name) noexcept {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return false;
  const std::size_t end = name.find_first_not_of("0123456789", at + 1);
  return end != std::string_view::npos && end > at + 1 && name[end] == '.';
}

}  // namespace stela::database
