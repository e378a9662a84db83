// Guards the writer against the caller's own SQL.
#include "database/transaction.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/writer.hpp"

#include <stela/framework/error.hpp>

#include <exception>

namespace stela::sqlite {

sqlite3* Writer::lend() noexcept {
  distrust();
  lent_.watch(connection_->handle());
  return connection_->handle();
}

std::int64_t Writer::run_sql(std::string_view sql, std::span<const SqlValue> values, Rows* rows) {
  owner_.check();
  return own_tables_.run_on(*connection_, sql, values, rows);
}

bool Writer::is_transaction_over() const noexcept {
  return lent_.is_over() || !connection_->in_transaction();
}

TransactionOutcome::State Writer::outcome_of_failure() const noexcept {
  return lent_.may_stand() ? State::in_doubt : State::rolled_back;
}

void Writer::check_transaction() {
  owner_.check();
  if (failed_with_) std::rethrow_exception(failed_with_);
  if (is_transaction_over()) std::rethrow_exception(database::ended_by_caller(lent_.may_stand()));
  if (!lent_.is_watching() || last_sequence(*connection_) == last_sequence_) return;
  throw UsageError{
      "the work wrote to the events table itself, or rolled back to a savepoint from before an "
      "append; all of it is rolled back"};
}

void Writer::refuse_committed() const {
  if (lent_.may_stand()) std::rethrow_exception(database::ended_by_caller(true));
}

}  // namespace stela::sqlite
