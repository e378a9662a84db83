#include "support/raw_sqlite.hpp"

#include <stdexcept>

namespace stela::test {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};

std::string value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return "NULL";
    case SQLITE_BLOB: {
      const auto* const bytes =
          static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
      std::string hex = "x'";
      for (int i = 0; i < sqlite3_column_bytes(statement, column); ++i) {
        hex += "0123456789abcdef"[bytes[i] >> 4];
        hex += "0123456789abcdef"[bytes[i] & 15];
      }
      return hex + '\'';
    }
    default:
      return {reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
              static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
  }
}

}  // namespace

RawSqlite::RawSqlite(const std::string& path) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  owned_.reset(database);
  handle_ = database;
  if (code != SQLITE_OK) throw std::runtime_error{path + ": " + sqlite3_errstr(code)};
  sqlite3_busy_timeout(database, 10'000);
  // Required of every connection to a Stela database: see docs/schema.md.
  sqlite3_wal_autocheckpoint(database, 0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void RawSqlite::run(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(handle_)};
  }
}

std::vector<std::string> RawSqlite::rows(const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(handle_)};
  }
  const std::unique_ptr<sqlite3_stmt, Finalize> statement{prepared};
  std::vector<std::string> rows;
  int code = SQLITE_OK;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
      if (i > 0) row += '|';
      row += value_of(prepared, i);
    }
    rows.push_back(std::move(row));
  }
  if (code != SQLITE_DONE) throw std::runtime_error{sqlite3_errmsg(handle_)};
  return rows;
}

std::int64_t RawSqlite::integer(const std::string& sql) {
  return std::stoll(rows(sql).at(0));
}

void RawSqlite::drop_triggers() {
  for (const std::string& name : rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")) {
    run("DROP TRIGGER " + name);
  }
}

}  // namespace stela::test
