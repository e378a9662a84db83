// The rows of keys, as the store of keys reads them.
#pragma once

#include "key_store.hpp"
#include "keys_sql/keys.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::keys {

/// A key as stored in its row.
struct KeyRow {
  std::int64_t number = 0;
  KeyId id = {};
  Code binding = {};
  std::string purpose = {};
  std::int64_t generation = 0;
  std::string subject = {};
  std::int64_t kek = 0;
  std::string wrapped = {};
  std::string kek_wrapped = {};
  Timestamp made_at = {};
  bool is_destroyed = false;
  bool is_allowed = false;
};

inline constexpr std::int64_t all_keks = std::numeric_limits<std::int64_t>::max();
/// What the root of a key store is sealed for.
inline constexpr std::string_view root_label = "stela key store root 1";

inline std::string text_or_empty(std::optional<std::string_view> text) {
  return std::string{text.value_or("")};
}

template <class Statement>
std::vector<KeyRow> key_rows(Connection& connection, const Statement& statement) {
  std::vector<KeyRow> all;
  auto row = connection.rows(statement);
  while (row.step()) {
    all.push_back({row.number(),
                   {code_of(row.id())},
                   code_of(row.binding()),
                   std::string{row.purpose()},
                   row.generation(),
                   text_or_empty(row.subject()),
                   row.kek().value_or(0),
                   text_or_empty(row.wrapped()),
                   text_or_empty(row.kek_wrapped()),
                   row.made_at(),
                   !row.wrapped().has_value(),
                   row.allowed_at().has_value()});
  }
  return all;
}

/// The last of the rows.
template <class Statement>
std::optional<KeyRow> key_row(Connection& connection, const Statement& statement) {
  auto rows = key_rows(connection, statement);
  return rows.empty() ? std::nullopt : std::optional{std::move(rows.back())};
}

}  // namespace stela::keys
