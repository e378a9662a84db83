// What SQLite says of a constraint that refused a row.
#pragma once

#include <stela/framework/error.hpp>

#include <string_view>

namespace stela::sqlite {

/// Reads SQLite's message about a table; empty `prefix`, or that of the names of a projector's
/// build. Without the table where the message doesn't name it.
Constraint parse_violation(std::string_view message, std::string_view prefix);

}  // namespace stela::sqlite
