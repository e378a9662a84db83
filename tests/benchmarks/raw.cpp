#include "raw.hpp"

#include <stdexcept>

namespace stela::bench {
namespace {

[[noreturn]] void fail_in(sqlite3* database, int code) {
  throw std::runtime_error{std::string{sqlite3_errstr(code)} + ": " + sqlite3_errmsg(database)};
}

}  // namespace

RawStatement::RawStatement(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) fail_in(database, code);
}

void RawStatement::fail(int code) const {
  fail_in(sqlite3_db_handle(get()), code);
}

RawDatabase::RawDatabase(const std::string& path, const RawOptions& options) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) fail_in(database, code);
  // Some loops have a connection that appends and one that marks.
  sqlite3_busy_timeout(database, 10'000);
  execute("PRAGMA journal_mode = WAL");
  execute(options.full_sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  sqlite3_wal_autocheckpoint(database, options.checkpoint_pages);
}

void RawDatabase::execute(const std::string& sql) {
  const int code = sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail_in(get(), code);
}

std::int64_t RawDatabase::integer(const std::string& sql) {
  RawStatement statement{get(), sql.c_str()};
  return statement.step() ? statement.integer(0) : 0;
}

void RawDatabase::truncate_log() {
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace stela::bench
