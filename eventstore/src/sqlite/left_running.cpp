#include "sqlite/left_running.hpp"

#include <stela/framework/error.hpp>

#include <string>

namespace stela::sqlite {
namespace {

/// The next after `statement` that is in the middle of its rows, or null.
sqlite3_stmt* next_running(sqlite3* database, sqlite3_stmt* statement) noexcept {
  do {
    statement = sqlite3_next_stmt(database, statement);
  } while (statement != nullptr && sqlite3_stmt_busy(statement) == 0);
  return statement;
}

}  // namespace

void refuse_left_running(sqlite3* database) {
  sqlite3_stmt* const statement = next_running(database, nullptr);
  if (statement == nullptr) return;
  // Only a blob's has no text.
  const char* const text = sqlite3_sql(statement);
  throw UsageError{"the work left " +
                   (text != nullptr ? std::string{"a statement running: "} + text + "; reset it"
                                    : std::string{"a blob open; close it"}) +
                   " before the work ends; all of it is rolled back"};
}

void end_left_running(sqlite3* database) noexcept {
  for (sqlite3_stmt* left = next_running(database, nullptr); left != nullptr;
       left = next_running(database, left)) {
    if (sqlite3_sql(left) != nullptr) sqlite3_reset(left);
  }
}

}  // namespace stela::sqlite
