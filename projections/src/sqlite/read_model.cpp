#include "sqlite/read_model.hpp"

#include <stela/framework/error.hpp>

#include "sqlite/failure.hpp"

namespace stela::projections {
namespace {

/// Writes {name} as the table's own name.
std::string with_table_names(std::string_view sql) {
  std::string text;
  for (const char c : sql) {
    if (c == '{' || c == '}') {
      text += '"';
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

void SqliteReadModel::run(std::string_view sql, std::initializer_list<Value> values) {
  const std::string text = with_table_names(sql);
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(connection_.handle(), text.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement{raw, sqlite3_finalize};
  if (code != SQLITE_OK) sqlite::fail(connection_.handle(), code, "\"" + text + '"');
  sqlite::Query query{connection_.handle(), raw};
  int parameter = 1;
  for (const Value& value : values) {
    if (const auto* const number = std::get_if<std::int64_t>(&value)) {
      query.bind(parameter, *number);
    } else if (const auto* const real = std::get_if<double>(&value)) {
      sqlite3_bind_double(raw, parameter, *real);
    } else if (const auto* const words = std::get_if<std::string_view>(&value)) {
      query.bind(parameter, *words);
    } else {
      query.bind(parameter, nullptr);
    }
    ++parameter;
  }
  query.run();
}

}  // namespace stela::projections
