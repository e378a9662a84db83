// Translates a statement for PostgreSQL.
#pragma once

#include "statement_file.hpp"

#include <string>

namespace stela::compiler {

/// The statement's own text for PostgreSQL, or its SQLite text without the hints for SQLite's
/// planner: `INDEXED BY`, `CROSS JOIN ... ON`. `IS :parameter` and `IS NOT :parameter` become IS
/// [NOT] DISTINCT FROM. Parameters get SQLite's numbers, and a type each, so that NULL has one too.
/// Malformed if the own text omits a parameter, or uses an undeclared one.
std::string postgres_text(const Statement& statement);

}  // namespace stela::compiler
