// The writer's work that has its own transaction.
#include "database/failure_watch.hpp"
#include "database/postgres/user_statement.hpp"
#include "forgotten_keys.hpp"
#include "postgres/doorbell.hpp"
#include "postgres/transaction.hpp"
#include "postgres/user_sql.hpp"
#include "postgres/writer.hpp"
#include "postgres_sql/settlement.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::postgres {

void Writer::execute_transaction(WriteWork& work) noexcept {
  const auto began = steady_now();
  begin_sequence_ = last_sequence_ = seen_ = 0;
  try {
    run_transaction(work);
    report_commit(last_sequence_ - begin_sequence_, 1, began);
  } catch (const ConnectionLost&) {
    roll_back();
    session_.reset();
    if (!work.rest.in_doubt) work.error = std::current_exception();
  } catch (...) {
    work.error = std::current_exception();
    const bool is_cut = is_ended_by_caller();
    roll_back();
    // The caller may have changed any setting of the session.
    if (is_cut) session_->connection.give_up();
    work.rest = {.is_cut = is_cut};
    // The error may depend on what was read: a conflict, or "already done".
    if (session_ == nullptr) return;
    if (!is_locked_ && seen_ > 0) find_run_again();
    work.rest.run = session_->run();
    work.rest.sequence = std::max(begin_sequence_, seen_);
  }
}

void Writer::find_run_again() noexcept try {
  if (session_->connection.is_usable()) session_->find_run();
} catch (const std::exception&) {
  session_->connection.give_up();
}

void Writer::run_transaction(WriteWork& work) {
  work.outcomes.begin(GlobalSequence::max());
  is_locked_ = false;
  may_defer_ = false;
  lent_.clear();
  ended_ = nullptr;
  foreign_events_ = nullptr;
  has_declared_ = false;
  begin();
  carry_out(work);
  commit(work);
}

void Writer::carry_out(WriteWork& work) {
  const detail::TransactionScope scope;
  const CommitQueue::Hold hold{queue_};
  if (work.request != nullptr) {
    work.result = append_inside(*work.request, work);
    return;
  }
  UserTransaction transaction{*this, work};
  try {
    (*work.user)(transaction);
  } catch (const std::exception&) {
    // Trying again wouldn't help, whatever the error is.
    if (ended_ || (is_ended_by_caller() && is_committed_by_caller())) fail_ended();
    throw;
  }
}

void Writer::begin() {
  const bool was_kept = session_ != nullptr;
  try {
    begin_on_session();
  } catch (const ConnectionLost&) {
    session_.reset();
    // A kept connection may have been lost long ago; nothing was asked of it.
    if (!was_kept) throw;
    begin_on_session();
  }
}

void Writer::begin_on_session() {
  const auto set = [&](Connection::Pipeline& pipeline) {
    pipeline.add(sql::set_transaction{.synchronous_commit = "off", .lock_timeout = lock_timeout_});
  };
  // Results that are only read must be durable, too.
  sessions_.check_run(session());
  begin_transaction(session().connection, begin_sql, "beginning a transaction", set);
}

void Writer::lock(WriteWork& work) {
  check_open();
  if (is_locked_) return;
  work.rest = {.run = session_->run(), .group = make_uuid()};
  Connection::Pipeline pipeline{connection()};
  pipeline.add(sql::lock{.lock = order_lock_});
  const auto group = pipeline.add(sql::enter_group{.group = work.rest.group});
  // Waiting for another lock would now hold up all writers.
  pipeline.add(sql::set_lock_timeout{.timeout = locked_timeout_});
  auto results = pipeline.run_all("taking the order lock");
  const auto entered = group.row(results);
  if (entered.run().is_nil() || entered.run() != session_->run()) {
    connection().roll_back();
    fail_replaced();
  }
  is_locked_ = true;
  begin_sequence_ = last_sequence_ = entered.before();
  if (entered.epoch() != epoch_) load_participants(connection());
  // Others' appends since the transaction began don't depend on it.
  work.outcomes.begin(GlobalSequence{begin_sequence_});
}

void Writer::fail_replaced() {
  sessions_.distrust();
  connection().give_up();
  // The events that were read are gone, so nothing depends on them.
  begin_sequence_ = seen_ = 0;
  throw StoreBusy{
      "a backup has taken the place of the store's tables meanwhile; nothing was written; try "
      "again"};
}

PGconn* Writer::lend(WriteWork& work) {
  owner_.check();
  lock(work);
  may_defer_ = true;
  connection().note_users_sql(true);
  if (lent_.empty()) lent_ = connection().row(sql::transaction_number{}).number();
  return connection().handle();
}

bool Writer::is_ended_by_caller() noexcept try {
  if (ended_ || lent_.empty() || !connection().is_usable()) return ended_ != nullptr;
  // After an error, the server answers nothing, and no transaction can begin. Unread results are
  // the caller's doing.
  const PGTransactionStatusType status = PQtransactionStatus(connection().handle());
  if (status == PQTRANS_IDLE || status == PQTRANS_ACTIVE) return true;
  if (status != PQTRANS_INTRANS) return false;
  return connection().row(sql::transaction_number_if_any{}).number() != lent_;
} catch (const std::exception&) {
  return false;
}

bool Writer::is_committed_by_caller() noexcept try {
  return connection().row(sql::transaction_status{.number = lent_}).status() == "committed";
} catch (const std::exception&) {
  return false;
}

void Writer::fail_ended() {
  if (!ended_) {
    connection().roll_back();
    ended_ = database::ended_by_caller(is_committed_by_caller());
    // Later writes on it wouldn't be part of the transaction.
    connection().give_up();
  }
  std::rethrow_exception(ended_);
}

void Writer::commit(WriteWork& work) {
  check_open();
  // The caller may have caught this error.
  if (foreign_events_) std::rethrow_exception(foreign_events_);
  work.rest.run = session_->run();
  work.rest.wrote = is_locked_;
  work.rest.is_unnumbered = is_locked_;
  work.rest.sequence = std::max(last_sequence_, seen_);
  try {
    commit_on_session();
  } catch (const ConnectionLost&) {
    work.rest.in_doubt = is_locked_;
    throw;
  }
}

void Writer::commit_on_session() {
  Connection::Pipeline pipeline{connection()};
  const UserSettings settings{users_path(connection()), "on"};
  const std::size_t before = may_defer_ ? add_deferred(pipeline, settings) : 0;
  if (connection().ran_users_sql()) {
    add_restoring(pipeline, connection());
    add_check_of_events(pipeline, last_sequence_);
    pipeline.add(sql::commit_unflushed{});
  }
  // Under the lock, the run was already compared.
  std::optional<Place<sql::server_run>> has_only_read;
  std::optional<Place<sql::try_to_lock>> has_appended;
  if (!is_locked_) has_only_read = pipeline.add(sql::server_run{});
  if (last_sequence_ > begin_sequence_) {
    has_appended = pipeline.add(sql::try_to_lock{.lock = bell_lock_});
  }
  pipeline.add("COMMIT");
  std::vector<Result> results = pipeline.run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_error()) {
      fail_if_foreign_events(results[i]);
      if (i < before) fail_deferred(connection(), results[i]);
      connection().fail(results[i].get(), "the commit");
    }
  }
  check_committed(results.back());
  connection().note_users_sql(false);
  const Uuid run = session_->run();
  if (has_only_read &&
      (!take_run(connection(), has_only_read->row(results)) || session_->run() != run)) {
    fail_replaced();
  }
  // A follower sleeps.
  if (has_appended && !has_appended->row(results).is_mine()) ring(connection());
}

void Writer::roll_back() noexcept {
  forget_declared();
  if (session_ != nullptr) session_->connection.roll_back();
}

AppendResult Writer::append_inside(const AppendRequest& request, WriteWork& work) {
  AppendResult result;
  // An append that conflicts has written nothing, so it needs no savepoint. Each savepoint with
  // writes takes a number of the transaction's, and more than 64 of them slow down everybody's
  // snapshots.
  const bool is_whole = work.request != nullptr;
  const bool may_write_and_fail =
      !is_whole && (participants_.has_user_code() || may_declare(request));
  run_inside(
      work, [&] { result = append_now(request, work); },
      may_write_and_fail ? Undo::by_savepoint : Undo::nothing);
  return result;
}

void Writer::run_inside(WriteWork& work, FunctionRef<void()> part, Undo undo) {
  // Locks before the savepoint: rolling back to it would release the lock.
  lock(work);
  const std::int64_t before = last_sequence_;
  const ledger::Work::Extent extent = work.extent();
  const bool has_savepoint = undo == Undo::by_savepoint;
  if (has_savepoint) connection().execute("SAVEPOINT stela_savepoint");
  try {
    work.outcomes.open(GlobalSequence{last_sequence_});
    part();
    check_open();
    if (has_savepoint) connection().execute("RELEASE SAVEPOINT stela_savepoint");
    work.outcomes.close(extent.depth, State::committed);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    participants_.forget();
    last_sequence_ = before;
    forget_declared();
    work.shrink_to(extent);
    // If this fails, the part's outcome is known only at the end of the transaction.
    if (has_savepoint) undo_savepoint();
    work.outcomes.close(extent.depth, State::rolled_back);
    std::rethrow_exception(error);
  }
}

void Writer::undo_savepoint() try {
  check_open();
  connection().execute("ROLLBACK TO SAVEPOINT stela_savepoint; RELEASE SAVEPOINT stela_savepoint");
} catch (const StoreFailed&) {
  if (lent_.empty()) throw;
  // The caller has begun another transaction, which has no such savepoint.
  fail_ended();
}

std::int64_t Writer::run_sql(WriteWork& work, std::string_view sql,
                             std::span<const SqlValue> values, Rows* rows) {
  owner_.check();
  // Taken before rows of the user's tables, which others lock under it.
  lock(work);
  may_defer_ = true;
  try {
    return run_user_sql(connection(), sql, values, rows);
  } catch (const UsageError&) {
    database::FailureWatch::note_refusal(connection().database());
    throw;
  } catch (const ConstraintViolated&) {
    database::FailureWatch::note_refusal(connection().database());
    throw;
  }
}

void Writer::note_failure() noexcept {
  if (lent_.empty() || PQstatus(connection().handle()) == CONNECTION_OK) return;
  try {
    throw ConnectionLost{"the connection was lost while it was lent to a handler"};
  } catch (const ConnectionLost&) {
    database::FailureWatch::note(connection().database());
  }
}

void Writer::check_open() {
  if (is_ended_by_caller()) fail_ended();
}

void Writer::check_usable() {
  if (!lent_.empty() && PQtransactionStatus(connection().handle()) == PQTRANS_INERROR) {
    throw UsageError{
        "a statement failed on the connection that the work was lent, and it went on: nothing can "
        "be written in the transaction any more"};
  }
}

bool Writer::may_declare(const AppendRequest& request) const {
  return std::any_of(request.streams.begin(), request.streams.end(), [&](const StreamAppend& one) {
    return std::any_of(one.events.begin(), one.events.end(), [&](const NewEvent& event) {
      if (!event.declared) return false;
      const bool has_tags = !event.declared->empty() && !tag_facts_.knows(event.type);
      const bool is_personal = !event.keys.empty() && !personal_types_.contains(event.type);
      return epoch_.is_nil() ? !event.declared->empty() || !event.keys.empty()
                             : has_tags || is_personal;
    });
  });
}

AppendResult Writer::append_now(const AppendRequest& request, WriteWork& work) {
  const Appending appending{*this};
  if (foreign_events_) std::rethrow_exception(foreign_events_);
  check_participants(connection());
  Undeclared undeclared;
  find_undeclared(request, undeclared);
  if (!undeclared.is_empty()) {
    has_declared_ = true;
    declare(connection(), undeclared);
    load_participants(connection());
  }
  check_keys(connection(), request);
  Group group{settings_.clock->now(), data_participant()};
  group.add(request, work.metadata, work.outcomes, ids_);
  Group::Call call = Group::Call::of_group(group, std::nullopt, epoch_, session_->run());
  const GroupAnswer answer =
      call.answer(connection().query(call.sql, std::move(call.parameters), "the append"));
  if (answer.is_stale) throw StoreFailed{"the participants changed under the order lock"};
  if (answer.before != last_sequence_) {
    const std::string last = std::to_string(last_sequence_);
    const std::string what =
        answer.before > last_sequence_
            ? "SQL of yours added an event after number " + last +
                  ", and the table 'events' is Stela's"
            : "SQL of yours rolled back to a savepoint from before the append of event " + last +
                  "; append outside of your savepoints";
    foreign_events_ = std::make_exception_ptr(
        database::ForeignEvents{what + "; all of the transaction is rolled back"});
    std::rethrow_exception(foreign_events_);
  }
  AppendResult result = group.result_of(0, answer);
  if (result.repeated) {
    postgres::complete_repeated(connection(), request, result);
    return result;
  }
  last_sequence_ = answer.after;
  tell_participants(group, answer, work);
  return result;
}

void Writer::tell_participants(const Group& group, const GroupAnswer& answer, WriteWork& work) {
  if (answer.after == answer.before || (!participants_.has_user_code() && !work.wants_events))
    return;
  std::vector<StoredEvent> appended;
  group.events_of(0, answer, kinds_, [&](const StoredEvent& event) { appended.push_back(event); });
  UserTransaction transaction{*this, work};
  for (TransactionParticipant* const participant : participants_.of_users()) {
    participant->on_append(transaction, appended);
  }
  if (!work.wants_events) return;
  for (const StoredEvent& event : appended) work.keep(event);
}

void Writer::execute_statements(WriteWork& work) noexcept {
  has_declared_ = false;
  try {
    begin();
    Connection& writing = connection();
    Connection::Pipeline pipeline{writing};
    // Taken before the order lock, which nobody may hold while waiting for another lock.
    pipeline.add(sql::lock{.lock = module_lock_});
    pipeline.add(sql::lock{.lock = order_lock_});
    pipeline.add(sql::set_commit{.synchronous_commit = sync_word(work.sync),
                                 .lock_timeout = locked_timeout_});
    pipeline.run_all("taking the order lock");
    {
      // Projectors' handlers run in it.
      const CommitQueue::Hold hold{queue_};
      (*work.statements)(writing);
    }
    commit_statements(writing, work.sync,
                      {sessions_, std::chrono::steady_clock::now() + settings_.commit_timeout});
  } catch (...) {
    work.error = std::current_exception();
    roll_back();
  }
}

}  // namespace stela::postgres
