// Parses SQLite's messages about constraints that refused a row.
#pragma once

#include <stela/framework/error.hpp>

#include <string_view>

namespace stela::sqlite {

/// `prefix` is empty, or the table prefix of a projector's build. The result has no table if the
/// message names none.
Constraint parse_violation(std::string_view message, std::string_view prefix);

}  // namespace stela::sqlite
