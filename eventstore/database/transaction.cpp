#include "database/transaction.hpp"

namespace stela::database {

OpenTransaction& open_transaction(Transaction& transaction) {
  auto* const open = dynamic_cast<OpenTransaction*>(&transaction);
  if (open == nullptr) throw UsageError{"this transaction isn't one of an event store's"};
  return *open;
}

}  // namespace stela::database
