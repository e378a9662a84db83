// Tables that move with their store: the statements that follow from their descriptions.
#pragma once

#include "check.hpp"
#include "statement_file.hpp"

namespace stela::compiler {

/// Adds `save_<table>` and `load_<table>` for each table of `file`. Rows are saved in the order of
/// the primary key, by pages after a key, and without columns that are NULL. What a row doesn't say
/// when it is loaded is what its column is otherwise. Malformed if the table is another one.
void add_statements_of_tables(StatementFile& file, const Schema& schema);

}  // namespace stela::compiler
