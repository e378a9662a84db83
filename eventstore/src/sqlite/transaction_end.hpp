// Whether a transaction was ended by a caller who was lent its connection.
#pragma once

#include <sqlite3.h>

namespace stela::sqlite {

/// Sees the end of a connection's transaction, and lets nobody but the writer commit it: a COMMIT
/// of the caller's rolls back, and so does SQL that would commit by itself because
/// `INSERT OR ROLLBACK` or RAISE(ROLLBACK) ended the transaction before. It takes the connection's
/// commit and rollback hooks, and must outlive `watch` until `let_go`. Threads: the connection's.
class TransactionEnd {
 public:
  /// From here on; does nothing while it watches.
  void watch(sqlite3* connection) noexcept;
  /// For the end of the transaction. True if it watched.
  bool let_go(sqlite3* connection) noexcept;

  /// The next commit is the writer's own.
  void expect_commit() noexcept { is_ours_ = true; }

  bool is_watching() const noexcept { return is_watching_; }
  /// It was rolled back.
  bool is_over() const noexcept { return is_over_; }

 private:
  static int on_commit(void* self) noexcept;
  static void on_roll_back(void* self) noexcept;

  bool is_watching_ = false;
  bool is_ours_ = false;
  bool is_over_ = false;
};

}  // namespace stela::sqlite
