// Several statements that see one state of the database.
#pragma once

#include "database/sqlite/connection.hpp"

#include <string_view>

namespace stela::sqlite {

/// One state of the database for as long as it lives: all statements see the same, and its locks
/// are taken once for all of them. Within a transaction, that of the transaction.
class OneState {
 public:
  explicit OneState(Connection& connection)
      : is_own_{!connection.in_transaction()}, end_{connection.query(end_sql)} {
    if (is_own_) connection.query(begin_sql).run();
  }
  ~OneState() {
    if (is_own_) sqlite3_step(end_.statement().get());
  }
  OneState(const OneState&) = delete;
  OneState& operator=(const OneState&) = delete;

 private:
  static constexpr std::string_view begin_sql = "BEGIN";
  static constexpr std::string_view end_sql = "COMMIT";

  const bool is_own_;
  /// Prepared before it is needed.
  Query end_;
};

}  // namespace stela::sqlite
