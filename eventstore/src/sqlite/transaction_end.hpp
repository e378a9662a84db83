// Detects that the borrower of a connection ended its transaction.
#pragma once

#include <sqlite3.h>

#include <cstdint>

namespace stela::sqlite {

/// Records how a connection's transaction ends, without preventing it. From `watch` to `let_go` it
/// uses the connection's commit and rollback hooks; the connection must outlive that.
/// Threads: the connection's.
class TransactionEnd {
 public:
  /// Starts watching; does nothing if it watches already.
  void watch(sqlite3* connection) noexcept;
  void let_go() noexcept;

  bool is_watching() const noexcept { return connection_ != nullptr; }
  /// The borrower of the connection, or an error, ended the transaction.
  bool is_over() const noexcept { return is_watching() && end_of_first() != End::none; }
  /// The transaction's changes may be committed.
  bool may_stand() const noexcept { return is_watching() && end_of_first() == End::commit; }

 private:
  enum class End : std::uint8_t { none, commit, roll_back };

  End end_of_first() const noexcept;

  sqlite3* connection_ = nullptr;
  /// The end of the first transaction: further ones may have begun and ended since.
  End end_ = End::none;
};

}  // namespace stela::sqlite
