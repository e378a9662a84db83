// What SQLite says of a constraint that refused a row.
#pragma once

#include <stela/framework/error.hpp>

#include <string_view>

namespace stela::projections {

/// Reads SQLite's message about a table of the build whose names begin with `prefix`. Without the
/// table where the message doesn't name it.
Constraint parse_violation(std::string_view message, std::string_view prefix);

}  // namespace stela::projections
