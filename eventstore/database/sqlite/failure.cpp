#include "database/sqlite/failure.hpp"

#include "database/failure_watch.hpp"
#include "sqlite/lock_file.hpp"

#include <stela/framework/error.hpp>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace stela::sqlite {
namespace {

int primary(int code) noexcept {
  return code & 0xff;
}

std::string describe(sqlite3* database, int code, std::string_view doing) {
  std::string text{doing};
  text += " failed: ";
  text += database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  text += " (SQLite code " + std::to_string(code) + ')';
  if (const char* const file =
          database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
      file != nullptr && *file != '\0') {
    text += " in ";
    text += file;
  }
  return text;
}

bool means_no_space(int error) noexcept {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/// Why the last write to the log failed: SQLite distinguishes a full disk, but not an exhausted
/// quota, and it keeps no system error of a COMMIT.
int error_of_log(sqlite3* database) noexcept {
  sqlite3_file* log = nullptr;
  int error = 0;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  return error;
}

bool is_out_of_space(sqlite3* database, int code) noexcept {
  if (primary(code) == SQLITE_FULL) return true;
  if (database == nullptr) return false;
  if (code == SQLITE_IOERR_WRITE && means_no_space(error_of_log(database))) return true;
  return (primary(code) == SQLITE_IOERR || primary(code) == SQLITE_CANTOPEN) &&
         means_no_space(sqlite3_system_errno(database));
}

std::string writer_of(sqlite3* database) {
  const char* const file = database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
  std::string holder;
  if (file != nullptr) holder = holder_of_transaction(file);
  return holder.empty() ? "another connection" : holder;
}

std::string system_reason(sqlite3* database) {
  const int error = database != nullptr ? sqlite3_system_errno(database) : 0;
  return error != 0 ? std::string{": "} + std::strerror(error) : std::string{};
}

constexpr std::string_view before_advice = ": keep a copy, and ";

/// `text` must be SQLite's last error, copied before this queries SQLite.
std::string with_advice(std::string text, sqlite3* database) {
  return text.append(before_advice).append(advice_on_damage(database));
}

/// Records the exception being handled as a failure of `database`.
void note(sqlite3* database) noexcept {
  if (database == nullptr) return;
  const char* const file = sqlite3_db_filename(database, "main");
  database::FailureWatch::note({database, file != nullptr ? file : ""});
}

[[noreturn]] void raise(sqlite3* database, int code, std::string_view doing);

}  // namespace

std::string_view advice_on_damage(sqlite3* database) noexcept {
  const bool can_be_opened =
      database != nullptr &&
      sqlite3_exec(database,
                   "SELECT * FROM sqlite_schema; SELECT * FROM stela_migrations; "
                   "SELECT * FROM stela_facts; SELECT * FROM event_kinds NOT INDEXED; "
                   "SELECT sum(length(name)) FROM streams NOT INDEXED",
                   nullptr, nullptr, nullptr) == SQLITE_OK;
  return can_be_opened ? "restore a backup; 'export --skip-damaged' saves what can still be read"
                       : "restore a backup";
}

std::string_view without_advice(std::string_view error) noexcept {
  return error.substr(0, error.find(before_advice));
}

bool is_store_failure(int code) noexcept {
  switch (primary(code)) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_AUTH:
    case SQLITE_TOOBIG:
    case SQLITE_SCHEMA:
      return false;
    default:
      return true;
  }
}

void note_last_error(sqlite3* database) noexcept {
  if (!database::FailureWatch::is_watching()) return;
  const int code = sqlite3_extended_errcode(database);
  // Other errors may be the handler's own fault: a misuse, or a table that it locks itself.
  if (primary(code) != SQLITE_FULL && primary(code) != SQLITE_IOERR) return;
  try {
    fail(database, code, "a statement of the handler's");
  } catch (...) {
    // `fail` has recorded it.
  }
}

bool leaves_commit_in_doubt(sqlite3* database, int code) noexcept {
  // A commit is valid once its last frame is written; a write that ran out of space didn't write
  // it.
  if (code == SQLITE_IOERR_WRITE) return !means_no_space(error_of_log(database));
  return primary(code) == SQLITE_IOERR || primary(code) == SQLITE_CORRUPT ||
         primary(code) == SQLITE_NOMEM;
}

void fail(sqlite3* database, int code, std::string_view doing) try {
  raise(database, code, doing);
} catch (const Error&) {
  if (is_store_failure(code)) note(database);
  throw;
}

namespace {

void raise(sqlite3* database, int code, std::string_view doing) {
  if (code == SQLITE_IOERR_NOMEM) throw std::bad_alloc{};
  if (is_out_of_space(database, code)) {
    throw StoreFull{describe(database, code, doing) +
                    "; nothing was written; free some space and try again"};
  }
  switch (primary(code)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw StoreBusy{describe(database, code, doing) + "; " + writer_of(database) +
                      " held the database's lock for too long; try again"};
    case SQLITE_NOMEM:
      throw std::bad_alloc{};
    case SQLITE_CANTOPEN:
      throw StoreFailed{describe(database, code, doing) + system_reason(database) +
                        "; see that its folder is there, and that this user may read and write "
                        "the file and the folder"};
    case SQLITE_READONLY:
      throw StoreFailed{
          describe(database, code, doing) +
          "; give this user write permission to the file, to its log and lock beside it, "
          "and to the folder"};
    case SQLITE_CORRUPT:
      throw StoreFailed{
          with_advice(describe(database, code, doing) + "; the file is damaged", database)};
    case SQLITE_NOTADB:
      throw SchemaMismatch{
          with_advice(describe(database, code, doing) +
                          "; this isn't an SQLite database; if it was one, it is damaged",
                      database)};
    case SQLITE_TOOBIG:
      throw UsageError{describe(database, code, doing)};
    default:
      throw StoreFailed{describe(database, code, doing)};
  }
}

}  // namespace

}  // namespace stela::sqlite
