// A statement as PostgreSQL takes it.
#pragma once

#include "statement_file.hpp"

#include <string>

namespace stela::compiler {

/// The statement's own text for PostgreSQL, or that for SQLite without its hints for SQLite's
/// planner: `INDEXED BY`, `CROSS JOIN ... ON`. `IS :parameter` and `IS NOT :parameter` become IS
/// [NOT] DISTINCT FROM. Parameters have the numbers that SQLite gave them, and their types, so that
/// NULL has one too. Malformed if a text of its own doesn't use a parameter, or uses another one.
std::string postgres_text(const Statement& statement);

}  // namespace stela::compiler
