#include "check.hpp"

#include <algorithm>
#include <string_view>

namespace stela::compiler {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

[[noreturn]] void fail(const Statement& statement, const std::string& what) {
  throw Malformed{statement.line, "'" + statement.name + "': " + what};
}

bool fits(Type type, std::string_view declared) {
  if (declared == "TEXT") return type == Type::text;
  if (declared == "BLOB") return type == Type::blob;
  if (declared == "INTEGER") return type != Type::text && type != Type::blob;
  return true;
}

void check_columns(const Statement& statement, sqlite3_stmt* prepared) {
  const auto actual = static_cast<std::size_t>(sqlite3_column_count(prepared));
  if (actual != statement.columns.size()) {
    fail(statement, "gives " + std::to_string(actual) + " columns, and declares " +
                        std::to_string(statement.columns.size()));
  }
  for (std::size_t at = 0; at < actual; ++at) {
    const Value& column = statement.columns[at];
    const std::string name = sqlite3_column_name(prepared, static_cast<int>(at));
    if (name != column.name) {
      fail(statement, "column " + std::to_string(at + 1) + " is '" + name +
                          "', and is declared as '" + column.name + "'; name it with AS");
    }
    const char* const declared = sqlite3_column_decltype(prepared, static_cast<int>(at));
    if (declared != nullptr && !fits(column.type, declared)) {
      fail(statement, "column '" + name + "' is " + declared + " in its table");
    }
  }
}

/// Refuses PostgreSQL's types in a list of parameters or columns.
void refuse_postgres(const Statement& statement, const std::vector<Value>& values) {
  for (const Value& value : values) {
    if (!value.is_array && value.type != Type::int4 && value.type != Type::uuid) continue;
    fail(statement, "the type of '" + value.name + "' is PostgreSQL's alone");
  }
}

std::vector<int> number(const Statement& statement, sqlite3_stmt* prepared) {
  std::vector<int> numbers;
  for (const Value& parameter : statement.parameters) {
    numbers.push_back(sqlite3_bind_parameter_index(prepared, (':' + parameter.name).c_str()));
    if (numbers.back() == 0)
      fail(statement, "doesn't use '" + parameter.name + "', which it takes");
  }
  const int count = sqlite3_bind_parameter_count(prepared);
  for (int each = 1; each <= count; ++each) {
    if (std::find(numbers.begin(), numbers.end(), each) != numbers.end()) continue;
    const char* const name = sqlite3_bind_parameter_name(prepared, each);
    fail(statement, std::string{"doesn't say that it takes "} + (name != nullptr ? name : "a '?'"));
  }
  return numbers;
}

}  // namespace

Schema::Schema() {
  sqlite3* database = nullptr;
  const int code = sqlite3_open(":memory:", &database);
  database_.reset(database);
  if (code != SQLITE_OK) throw std::runtime_error{"no database in memory"};
  // Connections have them; nothing runs here.
  for (const char* const function : {"stela_to_base64", "stela_from_base64"}) {
    sqlite3_create_function(
        database, function, 1, SQLITE_UTF8, nullptr, [](sqlite3_context*, int, sqlite3_value**) {},
        nullptr, nullptr);
  }
}

void Schema::migrate(const std::string& text) {
  if (sqlite3_exec(database_.get(), text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(database_.get())};
  }
}

void Schema::check(Statement& statement) const {
  refuse_postgres(statement, statement.parameters);
  refuse_postgres(statement, statement.columns);
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), statement.text.c_str(),
                                      static_cast<int>(statement.text.size()), &raw, &rest);
  const Prepared prepared{raw};
  if (code != SQLITE_OK) fail(statement, sqlite3_errmsg(database_.get()));
  if (rest != nullptr && *rest != '\0') fail(statement, "there is more than one statement");
  check_columns(statement, prepared.get());
  statement.numbers = number(statement, prepared.get());
}

std::vector<Column> Schema::columns(const std::string& table) const {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(
      database_.get(),
      "SELECT name, type, pk, iif(\"notnull\", coalesce(dflt_value, 'NULL'), 'NULL') "
      "FROM pragma_table_info(?)",
      -1, &raw, nullptr);
  const Prepared prepared{raw};
  sqlite3_bind_text(raw, 1, table.c_str(), -1, SQLITE_STATIC);
  const auto text = [&](int column) {
    return std::string{reinterpret_cast<const char*>(sqlite3_column_text(raw, column))};
  };
  std::vector<Column> columns;
  while (sqlite3_step(raw) == SQLITE_ROW) {
    columns.push_back({text(0), text(1), sqlite3_column_int(raw, 2) != 0, text(3)});
  }
  return columns;
}

}  // namespace stela::compiler
