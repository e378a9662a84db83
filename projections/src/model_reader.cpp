#include <stela/framework/error.hpp>
#include <stela/projections/model_reader.hpp>

#include "sqlite/core.hpp"
#include "sqlite/failure.hpp"
#include "sqlite/read_model.hpp"

#include <memory>
#include <string>

namespace stela {
namespace {

[[noreturn]] void fail(sqlite3* database, int code, std::string_view sql) {
  if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_TOOBIG) {
    throw UsageError{"\"" + std::string{sql} + "\" failed: " + sqlite3_errmsg(database)};
  }
  sqlite::fail(database, code, '"' + std::string{sql} + '"');
}

}  // namespace

Rows ModelReader::run(std::string_view sql, std::span<const SqlValue> values) {
  Rows rows;
  store_.core().reading().read([&](sqlite::Connection& connection) {
    sqlite3* const database = connection.handle();
    sqlite3_stmt* raw = nullptr;
    const int prepared =
        sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement{raw, sqlite3_finalize};
    if (prepared != SQLITE_OK) fail(database, prepared, sql);
    // What gives no columns begins a transaction, or changes the connection.
    if (raw == nullptr || sqlite3_stmt_readonly(raw) == 0 || sqlite3_column_count(raw) == 0) {
      throw UsageError{"\"" + std::string{sql} +
                       "\" doesn't only read; read models are written by their projectors"};
    }
    projections::bind_all(database, raw, values);
    const int code = projections::run_all(raw, &rows);
    if (code != SQLITE_DONE) fail(database, code, sql);
  });
  return rows;
}

}  // namespace stela
