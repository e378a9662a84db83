#include "sqlite/failure.hpp"

#include <stela/framework/error.hpp>

#include <cerrno>
#include <new>
#include <string>

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

bool is_out_of_space(sqlite3* database, int code) noexcept {
  if (primary(code) == SQLITE_FULL) return true;
  return primary(code) == SQLITE_IOERR && database != nullptr &&
         sqlite3_system_errno(database) == ENOSPC;
}

}  // namespace

bool leaves_commit_in_doubt(int code) noexcept {
  return primary(code) == SQLITE_IOERR || primary(code) == SQLITE_CORRUPT ||
         primary(code) == SQLITE_NOMEM;
}

void fail(sqlite3* database, int code, std::string_view doing) {
  if (is_out_of_space(database, code)) {
    throw StoreFull{describe(database, code, doing) +
                    "; nothing was written; free some space and try again"};
  }
  switch (primary(code)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw StoreBusy{describe(database, code, doing) +
                      "; somebody else held the database's lock for too long; try again"};
    case SQLITE_NOMEM:
      throw std::bad_alloc{};
    case SQLITE_READONLY:
      throw StoreFailed{describe(database, code, doing) +
                        "; give this user write permission to the file and its folder"};
    case SQLITE_CORRUPT:
      throw StoreFailed{describe(database, code, doing) +
                        "; the file is damaged: keep a copy, restore a backup, or export what can "
                        "still be read"};
    case SQLITE_NOTADB:
      throw SchemaMismatch{describe(database, code, doing) + "; this isn't an SQLite database"};
    case SQLITE_TOOBIG:
      throw UsageError{describe(database, code, doing)};
    default:
      throw StoreFailed{describe(database, code, doing)};
  }
}

}  // namespace stela::sqlite
