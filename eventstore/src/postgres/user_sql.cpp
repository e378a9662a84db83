#include "postgres/user_sql.hpp"

#include "database/postgres/sql_text.hpp"
#include "database/postgres/user_statement.hpp"
#include "database/postgres/user_values.hpp"
#include "postgres_sql/user_sql.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace stela::postgres {
namespace {

bool is_any_of(std::string_view word, std::span<const std::string_view> words) noexcept {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool changes_schema(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 4> words{"alter", "comment", "create", "drop"};
  return is_any_of(word, words);
}

bool is_temporary(std::string_view sql) {
  return first_word(sql) == "create" && (names(sql, "temp") || names(sql, "temporary"));
}

/// Whether it names a schema with Stela's tables, of this store or of another one.
bool names_schema_of_stela(Connection& connection, std::string_view sql) {
  if (names(sql, connection.options().schema)) return true;
  auto schemas = connection.rows(sql::schemas_of_stores{});
  while (schemas.step()) {
    if (names(sql, schemas.name())) return true;
  }
  return false;
}

/// The server skips a schema that is missing or that the role may not use. It would create or drop
/// a table in the next schema of the search_path.
void check_sql_schema(Connection& connection, const UserStatement& statement) {
  const std::string& schema = connection.options().sql_schema;
  if (schema.empty()) return;
  const auto found = connection.row(sql::may_use_sql_schema{.schema = schema});
  if (found.may_use()) return;
  statement.refuse("isn't run: the schema '" + schema + "', for SQL of your own, is missing, or '" +
                   std::string{found.me()} + "' may not use it; make it, and run grants.sql again");
}

/// Whether a constraint is left to the commit, which only a constraint trigger may be.
bool leaves_constraint_to_commit(std::string_view sql) {
  const std::vector<std::string> pieces = pieces_of(sql);
  constexpr std::array<std::string_view, 2> words{"initially", "deferred"};
  return std::search(pieces.begin(), pieces.end(), words.begin(), words.end()) != pieces.end() &&
         pieces[1] != "constraint";
}

/// Checks what the server can't: the owner of Stela's tables may do all of this.
void check(Connection& connection, const UserStatement& statement, std::string_view word) {
  constexpr std::array<std::string_view, 9> transactions{
      "abort", "begin", "commit", "end", "prepare", "release", "rollback", "savepoint", "start"};
  constexpr std::array<std::string_view, 12> others{"delete",   "explain", "insert", "lock",
                                                    "merge",    "select",  "show",   "table",
                                                    "truncate", "update",  "values", "with"};
  const std::string_view sql = statement.sql;
  if (word.empty()) statement.refuse("isn't one statement; run one at a time");
  if (is_any_of(word, transactions)) {
    statement.refuse(
        "isn't run: the transaction is begun and ended for it; what may fail alone goes into "
        "`transact` on the transaction");
  }
  if (!changes_schema(word) && !is_any_of(word, others)) {
    statement.refuse(
        "isn't run: in a transaction of the store, SQL reads, writes rows, and makes, alters and "
        "drops what is the user's");
  }
  if (is_temporary(sql)) {
    statement.refuse("isn't run: a table in temp goes with the connection; make it without");
  }
  if (changes_schema(word) && names_schema_of_stela(connection, sql)) {
    statement.refuse(
        "isn't run: it makes, alters or drops what is in the schema of Stela's tables, or of those "
        "of another store");
  }
  if (changes_schema(word) && leaves_constraint_to_commit(sql)) {
    statement.refuse(
        "isn't run: a constraint that is INITIALLY DEFERRED is left to the commit, where it is too "
        "late for the handler that breaks it; declare it INITIALLY IMMEDIATE, or leave it out");
  }
  if (changes_schema(word)) check_sql_schema(connection, statement);
  check_parameters(sql, statement.values.size());
}

}  // namespace

std::int64_t run_user_sql(Connection& connection, std::string_view sql,
                          std::span<const SqlValue> values, Rows* rows) {
  const UserStatement statement{.sql = sql, .text = with_dollars(sql), .values = values};
  const std::string word = first_word(sql);
  check(connection, statement, word);
  // Objects created or dropped without a schema aren't Stela's.
  const UserSettings settings{
      changes_schema(word) ? connection.users_path() : users_path(connection), "on"};
  return run_between_savepoints(connection, statement, &settings, rows);
}

}  // namespace stela::postgres
