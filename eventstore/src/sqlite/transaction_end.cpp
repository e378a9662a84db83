#include "sqlite/transaction_end.hpp"

#include <utility>

namespace stela::sqlite {

void TransactionEnd::watch(sqlite3* connection) noexcept {
  if (std::exchange(watching_, true)) return;
  // An error may have ended it before.
  over_ = sqlite3_get_autocommit(connection) != 0;
  sqlite3_commit_hook(connection, &on_commit, &over_);
  sqlite3_rollback_hook(connection, &on_roll_back, &over_);
}

bool TransactionEnd::let_go(sqlite3* connection) noexcept {
  if (!std::exchange(watching_, false)) return false;
  sqlite3_commit_hook(connection, nullptr, nullptr);
  sqlite3_rollback_hook(connection, nullptr, nullptr);
  over_ = false;
  return true;
}

int TransactionEnd::on_commit(void* over) noexcept {
  // Anything but 0 makes SQLite roll back.
  return std::exchange(*static_cast<bool*>(over), true) ? 1 : 0;
}

void TransactionEnd::on_roll_back(void* over) noexcept {
  *static_cast<bool*>(over) = true;
}

}  // namespace stela::sqlite
