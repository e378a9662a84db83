// Whether a transaction has ended that a caller was lent the connection of.
#pragma once

#include <sqlite3.h>

namespace stela::sqlite {

/// Sees the first end of a connection's transaction, and lets nothing be committed behind it: SQL
/// that goes on where `INSERT OR ROLLBACK` or RAISE(ROLLBACK) ended it would commit by itself. It
/// takes the connection's commit and rollback hooks, and must outlive `watch` until `let_go`.
/// Threads: the connection's.
class TransactionEnd {
 public:
  /// From here on; does nothing while it watches.
  void watch(sqlite3* connection) noexcept;
  /// For the end of the transaction. True if it watched.
  bool let_go(sqlite3* connection) noexcept;

  bool is_watching() const noexcept { return watching_; }
  bool is_over() const noexcept { return over_; }

 private:
  static int on_commit(void* over) noexcept;
  static void on_roll_back(void* over) noexcept;

  bool watching_ = false;
  bool over_ = false;
};

}  // namespace stela::sqlite
