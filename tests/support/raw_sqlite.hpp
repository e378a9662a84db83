// SQLite without Stela: to look at a database as another program would, and to damage it.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stela::test {

/// A connection of its own. Throws std::runtime_error with SQLite's words.
class RawSqlite {
 public:
  explicit RawSqlite(const std::string& path);
  /// A connection that somebody else owns: one that a transaction lends.
  explicit RawSqlite(sqlite3* borrowed) noexcept : handle_{borrowed} {}

  void run(const std::string& sql);
  /// Each row as one text: values joined by '|', blobs in hex, NULL as such.
  std::vector<std::string> rows(const std::string& sql);
  std::int64_t integer(const std::string& sql);

  /// What keeps rows as they are, out of the way.
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
