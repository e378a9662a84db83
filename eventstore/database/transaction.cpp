#include "database/transaction.hpp"

#include <string>

namespace stela::database {

std::exception_ptr ended_by_caller(bool may_stand) {
  const std::string what =
      "the work ended the transaction that it was called in; what it did before that ";
  if (may_stand) return std::make_exception_ptr(CommittedByCaller{what + "may be committed"});
  return std::make_exception_ptr(UsageError{what + "is rolled back"});
}

OpenTransaction& open_transaction(Transaction& transaction) {
  auto* const open = dynamic_cast<OpenTransaction*>(&transaction);
  if (open == nullptr) throw UsageError{"this transaction isn't one of an event store's"};
  return *open;
}

}  // namespace stela::database
