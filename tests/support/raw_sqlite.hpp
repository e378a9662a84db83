// SQLite without Stela: reads a database as another program would, and damages it.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stela::test {

/// Opens a connection of its own. Throws std::runtime_error with SQLite's message.
class RawSqlite {
 public:
  explicit RawSqlite(const std::string& path);
  /// Uses a connection that another object owns, such as one lent by a transaction.
  explicit RawSqlite(sqlite3* borrowed) noexcept : handle_{borrowed} {}

  void run(const std::string& sql);
  /// Each row as one text: values joined by '|', blobs in hex, NULL as "NULL".
  std::vector<std::string> rows(const std::string& sql);
  std::int64_t integer(const std::string& sql);

  /// Drops the triggers that protect rows from changes.
  void drop_triggers();

  sqlite3* handle() const noexcept { return handle_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> owned_;
  sqlite3* handle_;
};

}  // namespace stela::test
