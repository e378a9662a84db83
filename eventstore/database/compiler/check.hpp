// Checks, by SQLite, that a statement matches its declaration.
#pragma once

#include "statement_file.hpp"

#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

namespace stela::compiler {

/// A column of a table.
struct Column {
  std::string name;
  /// SQLite's word: TEXT, BLOB, INTEGER.
  std::string type;
  bool is_key;
  /// Its default in SQL, if it can't be NULL; otherwise NULL.
  std::string otherwise;

  bool is_text() const noexcept { return type == "TEXT"; }
  bool is_bytes() const noexcept { return type == "BLOB"; }
};

/// A database in memory with the tables that the statements use.
class Schema {
 public:
  Schema();

  /// Runs a migration; std::runtime_error with SQLite's message.
  void migrate(const std::string& text);

  /// Malformed unless `statement` is one statement that SQLite can prepare, with exactly the
  /// parameters and columns that it declares, of fitting types. Numbers its parameters.
  void check(Statement& statement) const;

  /// Of the table, in its order; empty if there is none.
  std::vector<Column> columns(const std::string& table) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace stela::compiler
