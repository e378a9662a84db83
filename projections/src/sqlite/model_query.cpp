#include "sqlite/model_query.hpp"

#include "database/sqlite/caller_sql.hpp"
#include "database/sqlite/failure.hpp"
#include "database/sqlite/sql_text.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <cctype>
#include <string>

namespace stela::projections {
namespace {

[[noreturn]] void fail(sqlite3* database, int code, std::string_view sql) {
  if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_TOOBIG) {
    throw UsageError{"\"" + std::string{sql} + "\" failed: " + sqlite3_errmsg(database)};
  }
  sqlite::fail(database, code, '"' + std::string{sql} + '"');
}

using Statement = sqlite::PreparedStatement::Owner;

/// Null if there are only blanks and comments. `rest` is the text after the statement.
Statement prepare(sqlite3* database, std::string_view sql, const char*& rest) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &raw, &rest);
  Statement statement{raw};
  if (code != SQLITE_OK) fail(database, code, sql);
  return statement;
}

bool is_word(std::string_view text, std::string_view word) noexcept {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == b;
  });
}

/// SQLite executes some pragmas while preparing them, even with EXPLAIN. Their table form (SELECT …
/// FROM pragma_table_info('orders')) changes nothing.
bool is_pragma(std::string_view sql) {
  std::string_view word = sqlite::first_word(sql);
  while (is_word(word, "EXPLAIN") || is_word(word, "QUERY") || is_word(word, "PLAN")) {
    sql.remove_prefix(static_cast<std::size_t>(word.data() + word.size() - sql.data()));
    word = sqlite::first_word(sql);
  }
  return is_word(word, "PRAGMA");
}

}  // namespace

void query_model(database::Connection& connection, std::string_view sql,
                 std::span<const SqlValue> values, Rows* rows) {
  sqlite3* const database = sqlite::connection_of(connection).handle();
  const auto refuse = [&](std::string_view reason) {
    throw UsageError{'"' + std::string{sql} + "\" " + std::string{reason}};
  };
  constexpr std::string_view may_write =
      "doesn't only read; read models are written by their projectors";
  if (is_pragma(sql)) refuse(may_write);
  const char* end = sql.data();
  const Statement statement = prepare(database, sql, end);
  // A statement without columns begins a transaction or changes the connection.
  if (!statement || sqlite3_stmt_readonly(statement.get()) == 0 ||
      sqlite3_column_count(statement.get()) == 0) {
    refuse(may_write);
  }
  const std::string_view rest = sql.substr(static_cast<std::size_t>(end - sql.data()));
  if (is_pragma(rest) || prepare(database, rest, end)) {
    refuse("isn't one statement; run one at a time");
  }
  sqlite3_stmt* const raw = statement.get();
  sqlite::bind_all(database, raw, values);
  const int code = sqlite::run_all(raw, rows);
  if (code != SQLITE_DONE) fail(database, code, sql);
}

}  // namespace stela::projections
