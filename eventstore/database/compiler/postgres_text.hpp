// Translates a statement for PostgreSQL.
#pragma once

#include "statement_file.hpp"

#include <string>

namespace stela::compiler {

/// The statement's own text for PostgreSQL, or else its SQLite text without the hints for SQLite's
/// planner: `INDEXED BY`, `CROSS JOIN ... ON`. `IS :parameter` and `IS NOT :parameter` become IS
/// [NOT] DISTINCT FROM. Parameters keep the numbers from SQLite, and have types, so that NULL has
/// one too. Malformed if the PostgreSQL text leaves out a parameter, or uses an unknown one. In a
/// text that only PostgreSQL runs, only the parameters change.
std::string postgres_text(const Statement& statement);

/// Marks the statements of `file` as PostgreSQL's own, and numbers their parameters. Their declared
/// columns aren't checked here: a test asks a server.
void make_postgres(StatementFile& file);

}  // namespace stela::compiler
