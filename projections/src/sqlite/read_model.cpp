#include "sqlite/read_model.hpp"

#include "database/sqlite/failure.hpp"
#include "projections_sql/tables.hpp"
#include "sqlite/violation.hpp"

#include <stela/framework/error.hpp>

#include <new>
#include <string>
#include <utility>

namespace stela::projections {
namespace {

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Where the quoted text, the comment or the single character at `at` ends.
std::size_t end_of_piece(std::string_view sql, std::size_t at) noexcept {
  const auto behind = [&](std::string_view end, std::size_t from) {
    const std::size_t found = sql.find(end, from);
    return found == std::string_view::npos ? sql.size() : found + end.size();
  };
  const char c = sql[at];
  if (c == '\'' || c == '"' || c == '`') return behind({&c, 1}, at + 1);
  if (c == '[') return behind("]", at + 1);
  if (sql.substr(at, 2) == "--") return behind("\n", at + 2);
  if (sql.substr(at, 2) == "/*") return behind("*/", at + 2);
  return at + 1;
}

bool is_blank(std::string_view text) noexcept {
  return text.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

/// Binds one parameter. SQLite's code.
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

}  // namespace

std::string_view first_word(std::string_view sql) noexcept {
  std::size_t begin = 0;
  while (begin < sql.size() && !is_name_character(sql[begin])) begin = end_of_piece(sql, begin);
  std::size_t end = begin;
  while (end < sql.size() && is_name_character(sql[end])) ++end;
  return sql.substr(begin, end - begin);
}

std::string with_table_names(std::string_view sql, std::string_view prefix) {
  std::string text;
  for (std::size_t at = 0; at < sql.size();) {
    if (sql[at] == '{') {
      std::size_t end = at + 1;
      while (end < sql.size() && is_name_character(sql[end])) ++end;
      if (end > at + 1 && end < sql.size() && sql[end] == '}') {
        text.append("\"").append(prefix).append(sql.substr(at + 1, end - at - 1)).append("\"");
        at = end + 1;
        continue;
      }
    }
    const std::size_t end = end_of_piece(sql, at);
    text.append(sql.substr(at, end - at));
    at = end;
  }
  return text;
}

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

SqliteReadModel::SqliteReadModel(sqlite::Driver& driver, std::string who, std::string prefix)
    : driver_{driver}, who_{std::move(who)}, prefix_{std::move(prefix)} {}

SqliteReadModel::~SqliteReadModel() {
  if (statements_.empty()) return;
  try {
    driver_.tidy([this] { statements_.clear(); });
  } catch (const UsageError&) {
    // Nobody leads in a forked child. A copy of an open transaction is left as it is.
    if (sqlite3_get_autocommit(driver_.writing().handle()) != 0) return;
    for (auto& [sql, statement] : statements_) (void)statement.release();
  }
}

std::int64_t SqliteReadModel::run(std::string_view sql, std::span<const SqlValue> values,
                                  Rows* rows) {
  sqlite3* const database = driver_.writing().handle();
  if (!driver_.writing().in_transaction()) {
    throw UsageError{who_ +
                     ": a statement before this one ended the transaction; don't use OR "
                     "ROLLBACK"};
  }
  sqlite3_stmt* const prepared = statement(sql);
  struct Reset {
    sqlite3_stmt* statement;
    ~Reset() { sqlite3_reset(statement); }
  } const reset{prepared};
  bind_all(database, prepared, values);
  const int code = run_all(prepared, rows);
  if (code != SQLITE_DONE) fail(code, sql);
  return sqlite3_stmt_readonly(prepared) != 0 ? 0 : sqlite3_changes64(database);
}

sqlite3_stmt* SqliteReadModel::statement(std::string_view sql) {
  if (const auto known = statements_.find(sql); known != statements_.end()) {
    return known->second.get();
  }
  Statement prepared = prepare(sql);
  // Only those who write values into their SQL get so many.
  if (statements_.size() == max_statements) statements_.clear();
  return statements_.emplace(std::string{sql}, std::move(prepared)).first->second.get();
}

SqliteReadModel::Statement SqliteReadModel::prepare(std::string_view sql) {
  const std::string text = with_table_names(sql, prefix_);
  sqlite3* const database = driver_.writing().handle();
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  refusal_.clear();
  sqlite3_set_authorizer(database, authorize, this);
  const int code = sqlite3_prepare_v3(database, text.data(), static_cast<int>(text.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, &rest);
  sqlite3_set_authorizer(database, nullptr, nullptr);
  Statement prepared{raw};
  if (code != SQLITE_OK) fail(code, sql);
  const auto parsed = static_cast<std::size_t>(rest - text.data());
  if (raw == nullptr || !is_blank(std::string_view{text}.substr(parsed))) {
    throw UsageError{who_ + ": \"" + std::string{sql} +
                     "\" isn't one statement; run one at a time"};
  }
  return prepared;
}

int SqliteReadModel::authorize(void* self, int action, const char* first, const char* second,
                               const char* database, const char*) noexcept {
  auto& model = *static_cast<SqliteReadModel*>(self);
  if (action == SQLITE_INSERT && database != nullptr && std::string_view{database} == "temp") {
    model.refusal_ = "a table in temp goes with the connection; make it without";
    return SQLITE_DENY;
  }
  // An index or a trigger is made on the table that is named second; it has to be ours too.
  const bool on_table = action == SQLITE_CREATE_INDEX || action == SQLITE_CREATE_TRIGGER;
  const bool allowed = model.allows(action, first != nullptr ? first : "") &&
                       (!on_table || model.allows(action, second != nullptr ? second : ""));
  return allowed ? SQLITE_OK : SQLITE_DENY;
}

bool SqliteReadModel::allows(int action, std::string_view object) noexcept {
  const bool is_ours = object.starts_with(prefix_);
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
      return true;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      if (is_ours || (creating_ && object.starts_with("sqlite_"))) return true;
      if (object.starts_with("sqlite_")) {
        refusal_ = "tables are made in `create` only, and dropped with their projector";
        return false;
      }
      refusal_ = "it writes '" + std::string{object} +
                 "'; a projector writes only tables of its own, named in braces";
      return false;
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
      if (creating_ && (is_ours || object.starts_with("sqlite_"))) return true;
      refusal_ = creating_ ? "name what is made in braces, as in CREATE TABLE {" +
                                 std::string{object} + "}"
                           : std::string{"tables are made in `create` only"};
      return false;
    case SQLITE_REINDEX:
      return creating_;
    default:
      refusal_ =
          "a projector only reads, and changes the rows of its own tables; its transaction is "
          "begun and ended for it";
      return false;
  }
}

void SqliteReadModel::fail(int code, std::string_view sql) {
  sqlite3* const database = driver_.writing().handle();
  if (sqlite::is_store_failure(code)) {
    try {
      sqlite::fail(database, code, who_ + ": \"" + std::string{sql} + '"');
    } catch (...) {
      store_failure_ = std::current_exception();
      throw;
    }
  }
  const std::string reason = refusal_.empty() ? sqlite3_errmsg(database) : refusal_;
  const std::string text = who_ + ": \"" + std::string{sql} + "\" failed: " + reason;
  if ((code & 0xff) != SQLITE_CONSTRAINT) throw UsageError{text};
  Constraint constraint = parse_violation(reason, prefix_);
  switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      if (constraint.table.empty()) constraint.table = table_of_index(constraint.name);
      throw UniquenessViolated{text, std::move(constraint)};
    default:
      throw ConstraintViolated{text, std::move(constraint)};
  }
}

std::string SqliteReadModel::table_of_index(std::string_view name) {
  const std::string index = table(name);
  auto row = driver_.writing().rows(sql::table_of_index{.name = index});
  if (!row.step()) return {};
  return std::string{row.table_name().substr(prefix_.size())};
}

}  // namespace stela::projections
