// Translates a statement for PostgreSQL.
#pragma once

#include "statement_file.hpp"

#include <string>

namespace stela::compiler {

/// The statement's own text for PostgreSQL, or its SQLite text without the hints for SQLite's
/// planner: `INDEXED BY`, `CROSS JOIN ... ON`. `IS :parameter` and `IS NOT :parameter` become IS
/// [NOT] DISTINCT FROM. Parameters have the numbers that SQLite gave them, and their types, so that
/// NULL has one too. Malformed if a text of its own doesn't use a parameter, or uses another one.
/// The text of one that only PostgreSQL runs stays as it is but for the parameters.
std::string postgres_text(const Statement& statement);

/// Makes the statements of `file` those that only PostgreSQL runs, and numbers their parameters.
/// Their columns are as declared: a test asks a server.
void make_postgres(StatementFile& file);

}  // namespace stela::compiler
