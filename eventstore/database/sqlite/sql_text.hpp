// A minimal SQL scanner, which tells names from quotes and comments.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string>
#include <string_view>

namespace stela::sqlite {

/// The first word of a statement, after blanks and comments.
STELA_EVENTSTORE_EXPORT std::string_view first_word(std::string_view sql) noexcept;
/// Writes {name} as "<prefix>name", except in quotes and comments.
STELA_EVENTSTORE_EXPORT std::string with_table_names(std::string_view sql, std::string_view prefix);
/// Whether a CREATE or ALTER TABLE has an INITIALLY DEFERRED key.
STELA_EVENTSTORE_EXPORT bool leaves_key_to_commit(std::string_view sql);
/// True if there is nothing but blanks and semicolons.
STELA_EVENTSTORE_EXPORT bool is_blank(std::string_view sql) noexcept;

}  // namespace stela::sqlite
