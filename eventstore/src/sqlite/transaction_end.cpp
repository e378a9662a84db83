#include "sqlite/transaction_end.hpp"

#include <utility>

namespace stela::sqlite {

void TransactionEnd::watch(sqlite3* connection) noexcept {
  if (is_watching()) return;
  connection_ = connection;
  // An error may have ended it before.
  end_ = sqlite3_get_autocommit(connection) != 0 ? End::roll_back : End::none;
  const auto on_commit = [](void* end) {
    if (*static_cast<End*>(end) == End::none) *static_cast<End*>(end) = End::commit;
    return 0;
  };
  const auto on_roll_back = [](void* end) {
    if (*static_cast<End*>(end) == End::none) *static_cast<End*>(end) = End::roll_back;
  };
  sqlite3_commit_hook(connection, on_commit, &end_);
  sqlite3_rollback_hook(connection, on_roll_back, &end_);
}

void TransactionEnd::let_go() noexcept {
  if (!is_watching()) return;
  sqlite3_commit_hook(connection_, nullptr, nullptr);
  sqlite3_rollback_hook(connection_, nullptr, nullptr);
  connection_ = nullptr;
}

TransactionEnd::End TransactionEnd::end_of_first() const noexcept {
  const bool is_unnoted = end_ == End::none && sqlite3_get_autocommit(connection_) != 0;
  // The caller has replaced the hooks.
  return is_unnoted ? End::commit : end_;
}

}  // namespace stela::sqlite
