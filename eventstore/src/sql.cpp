#include "database/transaction.hpp"

#include <stela/eventstore/sql.hpp>

namespace stela {

Sql::Sql(Transaction& transaction) : transaction_{database::open_transaction(transaction)} {}

std::int64_t Sql::run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) {
  return transaction_.run_sql(sql, values, rows);
}

}  // namespace stela
