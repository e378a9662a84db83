// Checks, by SQLite, that a statement matches its declaration.
#pragma once

#include "statement_file.hpp"

#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

namespace stela::compiler {

/// A database in memory with the tables that the statements use.
class Schema {
 public:
  Schema();

  /// Runs a migration; std::runtime_error with SQLite's message.
  void migrate(const std::string& text);

  /// Malformed unless `statement` is one statement that SQLite can prepare, with exactly the
  /// parameters and columns that it declares, of fitting types. Numbers its parameters.
  void check(Statement& statement) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace stela::compiler
