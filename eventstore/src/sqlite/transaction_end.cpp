#include "sqlite/transaction_end.hpp"

#include <utility>

namespace stela::sqlite {

void TransactionEnd::watch(sqlite3* connection) noexcept {
  if (std::exchange(is_watching_, true)) return;
  is_ours_ = false;
  // An error may have ended it before.
  is_over_ = sqlite3_get_autocommit(connection) != 0;
  sqlite3_commit_hook(connection, &on_commit, this);
  sqlite3_rollback_hook(connection, &on_roll_back, this);
}

bool TransactionEnd::let_go(sqlite3* connection) noexcept {
  if (!std::exchange(is_watching_, false)) return false;
  sqlite3_commit_hook(connection, nullptr, nullptr);
  sqlite3_rollback_hook(connection, nullptr, nullptr);
  is_over_ = false;
  return true;
}

int TransactionEnd::on_commit(void* self) noexcept {
  const auto& end = *static_cast<const TransactionEnd*>(self);
  // Anything but 0 makes SQLite roll back.
  return end.is_ours_ && !end.is_over_ ? 0 : 1;
}

void TransactionEnd::on_roll_back(void* self) noexcept {
  static_cast<TransactionEnd*>(self)->is_over_ = true;
}

}  // namespace stela::sqlite
