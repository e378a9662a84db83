// Generates the C++ header of a file of statements.
#pragma once

#include "statement_file.hpp"

#include <string>
#include <string_view>

namespace stela::compiler {

/// A header with a type for each statement of `file`, in the namespace stela::<module>::sql.
std::string header_of(const StatementFile& file, std::string_view module, std::string_view source);

}  // namespace stela::compiler
