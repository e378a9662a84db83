// Several statements that see one state of the database.
#pragma once

#include "database/sqlite/connection.hpp"

#include <string_view>

namespace stela::sqlite {

/// Holds one state of the database: all statements see the same state, and take its locks only
/// once. Within a transaction, it is the transaction's state.
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
  /// Prepared in advance.
  Query end_;
};

}  // namespace stela::sqlite
