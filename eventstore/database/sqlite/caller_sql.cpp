#include "database/sqlite/caller_sql.hpp"

#include "database/failure_watch.hpp"
#include "database/sqlite/failure.hpp"
#include "database/sqlite/sql_text.hpp"
#include "database/sqlite/violation.hpp"
#include "sqlite_sql/objects.hpp"

#include <new>
#include <utility>
#include <variant>

namespace stela::sqlite {
namespace {

/// Binds one parameter. Returns SQLite's code.
int bind(sqlite3_stmt* statement, int at, const SqlValue& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int at;
    int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, at); }
    int operator()(std::int64_t number) const { return sqlite3_bind_int64(statement, at, number); }
    int operator()(double number) const { return sqlite3_bind_double(statement, at, number); }
    int operator()(std::string_view text) const {
      return sqlite3_bind_text64(statement, at, text.empty() ? "" : text.data(), text.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(const std::string& text) const { return (*this)(std::string_view{text}); }
    int operator()(std::span<const std::byte> bytes) const {
      const void* const begin = bytes.empty() ? static_cast<const void*>("") : bytes.data();
      return sqlite3_bind_blob64(statement, at, begin, bytes.size(), SQLITE_STATIC);
    }
  };
  return std::visit(Binder{statement, at}, value);
}

bool is_short_of_memory(sqlite3_stmt* statement) noexcept {
  return sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM;
}

SqlCell cell_of(sqlite3_stmt* statement, int column) {
  const auto size = [&] {
    return static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const auto* const text =
          reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      if (text == nullptr) throw std::bad_alloc{};
      return std::string{text, size()};
    }
    case SQLITE_BLOB: {
      const auto* const bytes =
          static_cast<const std::byte*>(sqlite3_column_blob(statement, column));
      if (bytes == nullptr && is_short_of_memory(statement)) throw std::bad_alloc{};
      return std::vector<std::byte>(bytes, bytes + size());
    }
    default:
      return nullptr;
  }
}

bool changes_schema(int action) noexcept {
  switch (action) {
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VTABLE:
    case SQLITE_ALTER_TABLE:
      return true;
    default:
      return false;
  }
}

std::string_view view_of(const char* text) noexcept {
  return text != nullptr ? text : "";
}

/// The name of the index's table, without prefix; empty if there is no such index.
std::string table_of_index(Connection& connection, std::string_view prefix, std::string_view name) {
  const std::string index = std::string{prefix}.append(name);
  auto row = connection.rows(sql::table_of_index{.name = index});
  return row.step() ? std::string{row.table_name().substr(prefix.size())} : std::string{};
}

}  // namespace

void bind_all(sqlite3* database, sqlite3_stmt* statement, std::span<const SqlValue> values) {
  const auto wanted = static_cast<std::size_t>(sqlite3_bind_parameter_count(statement));
  if (wanted != values.size()) {
    throw UsageError{std::string{"\""} + sqlite3_sql(statement) + "\" has " +
                     std::to_string(wanted) + " parameters, and " + std::to_string(values.size()) +
                     " values were given"};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int code = bind(statement, static_cast<int>(i + 1), values[i]);
    if (code != SQLITE_OK) sqlite::fail(database, code, "binding a value");
  }
}

int run_all(sqlite3_stmt* statement, Rows* rows) {
  const int columns = sqlite3_column_count(statement);
  if (rows != nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(statement, i));
    *rows = Rows{std::move(names)};
  }
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
    for (int i = 0; rows != nullptr && i < columns; ++i) rows->add(cell_of(statement, i));
  }
  return code;
}

void CallerSql::abandon() noexcept {
  for (auto& [sql, statement] : statements_) (void)statement.release();
  statements_.clear();
}

std::int64_t CallerSql::run_on(Connection& connection, std::string_view sql,
                               std::span<const SqlValue> values, Rows* rows) try {
  return run_checked(connection, sql, values, rows);
} catch (const UsageError&) {
  database::FailureWatch::note_refusal(connection.database());
  throw;
} catch (const ConstraintViolated&) {
  database::FailureWatch::note_refusal(connection.database());
  throw;
}

std::int64_t CallerSql::run_checked(Connection& connection, std::string_view sql,
                                    std::span<const SqlValue> values, Rows* rows) {
  refusal_.clear();
  if (!connection.in_transaction()) {
    throw UsageError{(who_.empty() ? "" : who_ + ": ") +
                     "a statement before this one ended the transaction; don't use OR ROLLBACK"};
  }
  if (const auto known = statements_.find(sql); known != statements_.end()) {
    return run(connection, known->second.get(), sql, values, rows);
  }
  Statement prepared = prepare(connection, sql);
  sqlite3_stmt* const raw = prepared.get();
  if (changes_schema_) {
    // SQLite would reprepare them without checks, and a new trigger may do forbidden things.
    clear();
    return run(connection, raw, sql, values, rows);
  }
  // Only callers that embed values in their SQL need so many.
  if (statements_.size() == max_statements) clear();
  statements_.emplace(std::string{sql}, std::move(prepared));
  return run(connection, raw, sql, values, rows);
}

std::int64_t CallerSql::run(Connection& connection, sqlite3_stmt* statement, std::string_view sql,
                            std::span<const SqlValue> values, Rows* rows) {
  sqlite3* const database = connection.handle();
  struct Reset {
    sqlite3_stmt* statement;
    ~Reset() { sqlite3_reset(statement); }
  } const reset{statement};
  bind_all(database, statement, values);
  const int code = run_all(statement, rows);
  if (code != SQLITE_DONE) fail(connection, code, sql);
  return sqlite3_stmt_readonly(statement) != 0 ? 0 : sqlite3_changes64(database);
}

CallerSql::Statement CallerSql::prepare(Connection& connection, std::string_view sql) {
  const std::string text = translated(sql);
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  changes_schema_ = false;
  sqlite3_set_authorizer(connection.handle(), authorize, this);
  const int code =
      sqlite3_prepare_v3(connection.handle(), text.data(), static_cast<int>(text.size()),
                         SQLITE_PREPARE_PERSISTENT, &raw, &rest);
  sqlite3_set_authorizer(connection.handle(), nullptr, nullptr);
  Statement prepared{raw};
  if (code != SQLITE_OK) fail(connection, code, sql);
  const auto parsed = static_cast<std::size_t>(rest - text.data());
  if (raw == nullptr || !is_blank(std::string_view{text}.substr(parsed))) {
    throw UsageError{say(sql) + " isn't one statement; run one at a time"};
  }
  check(raw);
  if (changes_schema_ && leaves_key_to_commit(sql)) {
    throw UsageError{say(sql) +
                     " isn't run: a key that is INITIALLY DEFERRED is left to the commit, where it "
                     "is too late for the handler that breaks it; declare it INITIALLY IMMEDIATE, "
                     "or leave it out"};
  }
  return prepared;
}

int CallerSql::authorize(void* self, int action, const char* first, const char* second,
                         const char* database, const char*) noexcept try {
  auto& caller = *static_cast<CallerSql*>(self);
  const Action asked{action, view_of(first), view_of(second), view_of(database)};
  if (changes_schema(action)) caller.changes_schema_ = true;
  std::string refusal = action == SQLITE_INSERT && asked.database == "temp"
                            ? "a table in temp goes with the connection; make it without"
                            : caller.refusal_of(asked);
  if (refusal.empty()) return SQLITE_OK;
  caller.refusal_ = std::move(refusal);
  return SQLITE_DENY;
} catch (...) {
  return SQLITE_DENY;
}

std::string CallerSql::say(std::string_view sql) const {
  return (who_.empty() ? "" : who_ + ": ") + '"' + std::string{sql} + '"';
}

void CallerSql::fail(Connection& connection, int code, std::string_view sql) {
  sqlite3* const database = connection.handle();
  if (is_store_failure(code)) {
    try {
      sqlite::fail(database, code, say(sql));
    } catch (...) {
      note_store_failure();
      throw;
    }
  }
  const std::string reason = refusal_.empty() ? sqlite3_errmsg(database) : refusal_;
  const std::string text = say(sql) + " failed: " + reason;
  if ((code & 0xff) != SQLITE_CONSTRAINT) throw UsageError{text};
  Constraint constraint = parse_violation(reason, prefix());
  switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      if (constraint.table.empty() && !constraint.name.empty()) {
        constraint.table = table_of_index(connection, prefix(), constraint.name);
      }
      throw UniquenessViolated{text, std::move(constraint)};
    default:
      throw ConstraintViolated{text, std::move(constraint)};
  }
}

}  // namespace stela::sqlite
