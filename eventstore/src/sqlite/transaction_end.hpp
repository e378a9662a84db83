// Whether a transaction was ended by a caller who was lent its connection.
#pragma once

#include <sqlite3.h>

#include <cstdint>

namespace stela::sqlite {

/// Notes how a connection's transaction ends, and keeps nobody from ending it. It takes the
/// connection's commit and rollback hooks from `watch` until `let_go`, which it must outlive.
/// Threads: the connection's.
class TransactionEnd {
 public:
  /// From here on; does nothing while it watches.
  void watch(sqlite3* connection) noexcept;
  void let_go() noexcept;

  bool is_watching() const noexcept { return connection_ != nullptr; }
  /// Who was lent the connection ended the transaction, or an error did.
  bool is_over() const noexcept { return is_watching() && end_of_first() != End::none; }
  /// What was done in it may be committed.
  bool may_stand() const noexcept { return is_watching() && end_of_first() == End::commit; }

 private:
  enum class End : std::uint8_t { none, commit, roll_back };

  End end_of_first() const noexcept;

  sqlite3* connection_ = nullptr;
  /// Of the transaction that was open first: others may have been begun and ended since.
  End end_ = End::none;
};

}  // namespace stela::sqlite
