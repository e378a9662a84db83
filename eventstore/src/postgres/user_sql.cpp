#include "postgres/user_sql.hpp"

#include "database/postgres/sql_text.hpp"
#include "postgres/server_session.hpp"
#include "postgres/user_values.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
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

[[noreturn]] void refuse(std::string_view sql, std::string_view why) {
  throw UsageError{'"' + std::string{sql} + "\" isn't run: " + std::string{why}};
}

[[noreturn]] void refuse_several(std::string_view sql) {
  throw UsageError{'"' + std::string{sql} + "\" isn't one statement; run one at a time"};
}

bool is_temporary(std::string_view sql) {
  return first_word(sql) == "create" && (names(sql, "temp") || names(sql, "temporary"));
}

/// What the server can't be asked: whoever owns Stela's tables may do all of this.
void check(std::string_view sql, std::string_view word, std::string_view schema,
           std::size_t values) {
  constexpr std::array<std::string_view, 9> transactions{
      "abort", "begin", "commit", "end", "prepare", "release", "rollback", "savepoint", "start"};
  constexpr std::array<std::string_view, 11> others{"delete",   "explain", "insert", "lock",
                                                    "merge",    "select",  "show",   "table",
                                                    "truncate", "update",  "with"};
  if (word.empty()) refuse_several(sql);
  if (sql.find('\0') != std::string_view::npos) refuse(sql, "it has a zero byte");
  if (is_any_of(word, transactions)) {
    refuse(sql,
           "the transaction is begun and ended for it; what may fail alone goes into `transact` on "
           "the transaction");
  }
  if (!changes_schema(word) && word != "values" && !is_any_of(word, others)) {
    refuse(
        sql,
        "in a transaction of the store, SQL reads, writes rows, and makes, alters and drops what "
        "is the user's");
  }
  if (is_temporary(sql)) refuse(sql, "a table in temp goes with the connection; make it without");
  if (changes_schema(word) && names(sql, schema)) {
    refuse(sql, "it makes, alters or drops what is in the schema of Stela's tables");
  }
  check_parameters(sql, values);
}

/// The statement's result is the third; after one that fails there are only aborted ones.
std::vector<Result> run_between_savepoints(Connection& connection, const std::string& path,
                                           std::string_view sql, std::span<const SqlValue> values) {
  constexpr std::string_view set_sql =
      "SELECT set_config('search_path', $1, true), set_config('stela_sql.guard', $2, true)";
  const std::string back = own_path(connection.options().schema);
  const std::string text = with_dollars(sql);
  Parameters users;
  users.add(path).add(std::string_view{"on"});
  Parameters own;
  own.add(back).add(std::string_view{"off"});
  Connection::Pipeline pipeline{connection};
  pipeline.add("SAVEPOINT stela_sql");
  pipeline.add(set_sql, std::move(users));
  pipeline.add_user(text, to_parameters(values));
  pipeline.add(set_sql, std::move(own));
  pipeline.add("RELEASE SAVEPOINT stela_sql");
  return pipeline.run();
}

/// The user's own mistake, or what a connection fails with.
[[noreturn]] void fail(Connection& connection, const Result& result, std::string_view sql) {
  constexpr std::array<std::string_view, 8> mistakes{"0A", "21", "22", "2B",
                                                     "3F", "42", "44", "P0"};
  const std::string_view state = state_of(result.get());
  const std::string doing = '"' + std::string{sql} + '"';
  if (!is_any_of(state.substr(0, 2), mistakes) && state != "25001") {
    connection.fail(result.get(), doing);
  }
  const char* const said = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
  constexpr std::string_view several = "cannot insert multiple commands";
  if (said != nullptr && std::string_view{said}.starts_with(several)) refuse_several(sql);
  throw UsageError{doing + " failed: " + (said != nullptr ? said : "") + " (SQLSTATE " +
                   std::string{state} + ')'};
}

bool changes_rows(std::string_view command) noexcept {
  return command.starts_with("INSERT") || command.starts_with("UPDATE") ||
         command.starts_with("DELETE") || command.starts_with("MERGE");
}

}  // namespace

std::int64_t run_user_sql(Connection& connection, const std::string& path, std::string_view sql,
                          std::span<const SqlValue> values, Rows* rows) {
  const std::string word = first_word(sql);
  const std::string& schema = connection.options().schema;
  check(sql, word, schema, values.size());
  // What is made or dropped without a schema isn't Stela's.
  const std::string found_by =
      changes_schema(word) ? path : path + (path.empty() ? "" : ", ") + own_path(schema);
  const std::vector<Result> results = run_between_savepoints(connection, found_by, sql, values);
  for (const Result& each : results) {
    if (!each.is_error()) continue;
    connection.execute("ROLLBACK TO SAVEPOINT stela_sql; RELEASE SAVEPOINT stela_sql");
    fail(connection, each, sql);
  }
  const Result& result = results[2];
  if (rows != nullptr) *rows = rows_of(result);
  return changes_rows(result.command()) ? result.changes() : 0;
}

void check_deferred(Connection& connection) {
  // In a savepoint that is rolled back: what is deferred stays so.
  try {
    connection.execute("SAVEPOINT stela_sql; SET CONSTRAINTS ALL IMMEDIATE");
  } catch (const ConnectionLost&) {
    throw;
  } catch (...) {
    connection.execute("ROLLBACK TO SAVEPOINT stela_sql; RELEASE SAVEPOINT stela_sql");
    throw;
  }
  connection.execute("ROLLBACK TO SAVEPOINT stela_sql; RELEASE SAVEPOINT stela_sql");
}

}  // namespace stela::postgres
