// What a writer does about the connection that it lent to others' code.
#include "database/sqlite/failure.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/left_running.hpp"
#include "sqlite/stand_ins.hpp"
#include "sqlite/writer.hpp"

#include <stela/framework/error.hpp>

#include <exception>
#include <utility>

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
  // Who was lent the connection may have ended it and begun another.
  return !connection_->in_transaction() || lent_.is_over() ||
         (distrusted_ && connection_->data_version() != seen_version_);
}

TransactionOutcome::State Writer::outcome_of_failure() const noexcept {
  // Who was lent the connection may have taken away the hooks that keep it from committing.
  const bool may_stand = distrusted_ && !lent_.is_over() && is_transaction_over();
  return may_stand ? State::in_doubt : State::rolled_back;
}

void Writer::check_transaction() {
  owner_.check();
  drop_hooks();
  if (failed_with_) std::rethrow_exception(failed_with_);
  // Without the connection, SQL of the caller's can only roll back.
  if (lent_.is_over() || (!distrusted_ && is_transaction_over())) {
    throw UsageError{
        "the work ended the transaction that it was called in; all of it is rolled back"};
  }
  if (is_transaction_over()) {
    throw UsageError{
        "the work ended the transaction that it was called in, and whether what it did before is "
        "committed isn't known: it set a commit or rollback hook"};
  }
  if (!distrusted_) return;
  // The work may have rolled back to a savepoint of its own.
  tags_.forget();
  if (lent_.is_watching()) refuse_stand_ins(*connection_);
  if (last_sequence(*connection_) != last_sequence_) {
    throw UsageError{
        "the work wrote to the events table itself, or rolled back to a savepoint from before an "
        "append; all of it is rolled back"};
  }
}

void Writer::end_distrust() noexcept {
  if (!owner_.is_this() || !std::exchange(distrusted_, false)) return;
  known_ = false;
  const bool was_over = lent_.is_over();
  const bool was_lent = lent_.let_go(connection_->handle());
  end_left_running(connection_->handle());
  if (!was_lent) return;
  connection_->take_back();
  // Outside a transaction it can be changed, and the work was there.
  if (was_over) is_synchronous_known_ = false;
  checkpoints_.watch();
  has_lent_ = true;
}

/// A hook of the work's could refuse what ends the transaction.
void Writer::drop_hooks() noexcept {
  if (!lent_.is_watching() || !owner_.is_this()) return;
  sqlite3_progress_handler(connection_->handle(), 0, nullptr, nullptr);
  sqlite3_set_authorizer(connection_->handle(), nullptr, nullptr);
}

void Writer::end_left_open() {
  connection_->roll_back();
  if (!connection_->in_transaction()) return;
  sqlite3* const database = connection_->handle();
  fail(database, sqlite3_extended_errcode(database), "ending an earlier transaction");
}

void Writer::drop_stand_ins() {
  if (!has_lent_) return;
  if (find_stand_in(*connection_)) drop_temporary(*connection_);
  has_lent_ = false;
}

}  // namespace stela::sqlite
