#include "sqlite/writer.hpp"

#include "database/sqlite/failure.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite_sql/participants.hpp"

#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <new>

namespace stela::sqlite {

namespace {

constexpr std::string_view begin_sql = "BEGIN IMMEDIATE";
constexpr std::string_view commit_sql = "COMMIT";
// A user's savepoint with this name would be taken for Stela's.
constexpr std::string_view savepoint_sql = "SAVEPOINT stela_savepoint";
constexpr std::string_view release_sql = "RELEASE stela_savepoint";
constexpr std::string_view roll_back_to_sql = "ROLLBACK TO stela_savepoint";

WriteWork& work_of(CommitQueue::Ticket* ticket) {
  return *static_cast<WriteWork*>(ticket);
}

}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection, std::unique_ptr<WriteLock> lock,
               KindTable& kinds, const Settings& settings)
    : ledger::Writer{*settings.conventions, settings.read_only, settings.random,
                     CommitQueue::max_groups},
      connection_{std::move(connection)},
      lock_{std::move(lock)},
      kinds_{kinds},
      settings_{settings},
      checkpoints_{*connection_,
                   {.pages = settings.checkpoint_pages,
                    .busy_timeout = settings.busy_timeout,
                    .conventions = settings.conventions}} {
  kinds_.set_writer(*connection_);
  set_synchronous(settings.durability == Durability::full);
}

Writer::~Writer() {
  // A forked child leaves its copy of an open transaction alone.
  if (!owner_.is_this() && sqlite3_get_autocommit(connection_->handle()) == 0) {
    own_tables_.abandon();
  }
  close();
}

void Writer::run(WriteWork& work) {
  refuse_unless_writable();
  submit(work, std::max(settings_.busy_timeout, least_patience));
  if (!work.error) return;
  report_failure(work.error);
  std::rethrow_exception(work.error);
}

void Writer::run(DeferredWrites& batch) noexcept {
  try {
    refuse_unless_writable();
    queue_.submit(
        batch.turn(), [&](auto group) { batch.in_context(group, [&] { execute(group); }); },
        std::max(settings_.busy_timeout, least_patience));
  } catch (...) {
    batch.fail(std::current_exception());
  }
  for (const WriteWork* const work : batch.taken()) {
    if (work->error) report_failure(work->error);
  }
}

void Writer::submit(WriteWork& work, std::chrono::milliseconds patience) {
  // Check this first: a thread that doesn't exist in a forked child may be leading.
  owner_.check();
  const auto lead = [this](auto group) { execute(group); };
  try {
    queue_.submit(work, lead, patience);
  } catch (const StoreBusy&) {
    work.error = std::current_exception();
  }
}

void Writer::read(FunctionRef<void(Connection&)> work) {
  if (queue_.is_leading()) return work(*connection_);
  const auto held = [&](Connection& connection) {
    const CommitQueue::Hold hold{queue_};
    work(connection);
  };
  run_outside(held, std::max(settings_.busy_timeout, least_patience));
}

void Writer::tidy(FunctionRef<void(Connection&)> work) {
  run_outside(work, CommitQueue::most_patience);
}

void Writer::run_outside(FunctionRef<void(Connection&)> work, std::chrono::milliseconds patience) {
  if (queue_.is_leading()) return work(*connection_);
  WriteWork ticket;
  ticket.exclusive = true;
  ticket.outside = &work;
  submit(ticket, patience);
  if (ticket.error) std::rethrow_exception(ticket.error);
}

void Writer::give_up(const std::string& reason) {
  tidy([&](Connection&) {
    failure_ = reason + "; what was committed last may be lost in a power cut; reopen the store";
  });
}

void Writer::run_alone(FunctionRef<void(Connection&)> work) {
  refuse_unless_writable();
  const auto locked = [&](Connection& connection) {
    const WriteLockGuard guard{*lock_, settings_.busy_timeout};
    known_ = false;
    work(connection);
  };
  run_outside(locked, std::max(settings_.busy_timeout, least_patience));
}

void Writer::run_statements(FunctionRef<void(Connection&)> statements, Sync sync) {
  WriteWork work;
  work.exclusive = true;
  work.statements = &statements;
  work.sync = sync;
  run(work);
}

void Writer::run_along(FunctionRef<void(Connection&)> statements, Sync sync) {
  WriteWork work;
  work.statements = &statements;
  work.sync = sync;
  run(work);
}

void Writer::execute_outside(WriteWork& work) noexcept {
  try {
    end_left_open();
    (*work.outside)(*connection_);
  } catch (...) {
    work.error = std::current_exception();
  }
}

void Writer::execute(std::span<CommitQueue::Ticket* const> group) noexcept {
  if (work_of(group.front()).outside != nullptr) return execute_outside(work_of(group.front()));
  try {
    if (!failure_.empty()) throw StoreFailed{failure_};
    end_left_open();
    const auto began = settings_.clock->steady_now();
    {
      const WriteLockGuard guard{*lock_, settings_.busy_timeout};
      settings_.place->check();
      execute_in_transaction(group);
      if (owner_.is_this()) checkpoints_.run_if_due();
    }
    end(group, State::committed);
    report_commit(group, began);
  } catch (const CommitInDoubt&) {
    end(group, State::in_doubt, std::current_exception());
  } catch (...) {
    end(group, State::rolled_back, std::current_exception());
  }
}

void Writer::end_left_open() {
  connection_->roll_back();
  if (!connection_->in_transaction()) return;
  sqlite3* const database = connection_->handle();
  fail(database, sqlite3_extended_errcode(database), "ending an earlier transaction");
}

void Writer::end(std::span<CommitQueue::Ticket* const> group, State state,
                 const std::exception_ptr& error) noexcept {
  running_ = nullptr;
  for (CommitQueue::Ticket* const member : group) {
    WriteWork& work = work_of(member);
    // A member without an error of its own conflicted with changes that were rolled back.
    if (error) work.error = error;
    work.outcomes.settle(state);
  }
}

void Writer::execute_in_transaction(std::span<CommitQueue::Ticket* const> group) {
  begin(group.size() == 1 ? work_of(group.front()).sync : Sync::as_stored);
  try {
    for (CommitQueue::Ticket* const member : group) run_member(work_of(member), group.size() > 1);
    if (group.size() == 1 && work_of(group.front()).error) return roll_back();
    commit();
  } catch (...) {
    roll_back();
    throw;
  }
}

void Writer::run_member(WriteWork& work, bool in_group) {
  work.outcomes.begin(GlobalSequence{begin_.last_sequence});
  running_ = &work;
  if (!in_group) {
    try {
      carry_out(work);
    } catch (...) {
      work.error = std::current_exception();
      work.outcomes.settle(outcome_of_failure());
    }
    return;
  }
  const Mark before = mark();
  connection_->query(savepoint_sql).run();
  try {
    carry_out(work);
  } catch (...) {
    work.error = std::current_exception();
    // Some errors end the entire transaction; then all members fail.
    if (!connection_->in_transaction()) throw;
    connection_->query(roll_back_to_sql).run();
    go_back_to(before);
    work.outcomes.settle(State::rolled_back);
  }
  connection_->query(release_sql).run();
}

void Writer::carry_out(WriteWork& work) {
  const detail::TransactionScope scope;
  // User code may run. Stela's own work, like the commit, always ends.
  std::optional<CommitQueue::Hold> hold;
  if (work.exclusive) hold.emplace(queue_);
  if (work.request != nullptr) {
    work.result = append_now(*work.request, work);
  } else if (work.statements != nullptr) {
    (*work.statements)(*connection_);
  } else {
    run_user(work);
  }
}

void Writer::run_user(WriteWork& work) {
  OpenTransaction transaction{*this, work};
  try {
    (*work.user)(transaction);
  } catch (const std::exception&) {
    // Whatever its own error was, a retry would repeat committed changes.
    refuse_committed();
    throw;
  }
  check_transaction();
}

AppendResult Writer::append_inside(const AppendRequest& request, WriteWork& work) {
  AppendResult result;
  run_inside(work, [&] { result = append_now(request, work); });
  return result;
}

void Writer::run_inside(WriteWork& work, FunctionRef<void()> part) {
  check_transaction();
  const Mark before = mark();
  const ledger::Work::Extent extent = work.extent();
  open_savepoint();
  try {
    work.outcomes.open(GlobalSequence{last_sequence_});
    part();
    check_transaction();
    connection_->query(release_sql).run();
    work.outcomes.close(extent.depth, State::committed);
  } catch (...) {
    note_failure();
    work.outcomes.close(extent.depth, outcome_of_failure());
    undo_inside(before);
    work.shrink_to(extent);
    refuse_committed();
    throw;
  }
}

void Writer::open_savepoint() {
  try {
    connection_->query(savepoint_sql).run();
  } catch (...) {
    note_failure();
    throw;
  }
}

void Writer::undo_inside(const Mark& before) noexcept {
  // Some errors have ended the transaction already.
  if (!is_transaction_over()) {
    try {
      connection_->query(roll_back_to_sql).run();
      connection_->query(release_sql).run();
    } catch (...) {
      // Changes that can't be undone must not remain, so the entire transaction ends, and later
      // calls say so.
      failed_with_ = std::current_exception();
      connection_->roll_back();
    }
  }
  go_back_to(before);
}

void Writer::note_failure() noexcept {
  note_last_error(connection_->handle());
  if (connection_->in_transaction() || failed_with_ || lent_.may_stand()) return;
  const std::exception_ptr failure = std::current_exception();
  try {
    throw;
  } catch (const StoreFull&) {
    failed_with_ = failure;
  } catch (const StoreFailed&) {
    failed_with_ = failure;
  } catch (const std::bad_alloc&) {
    failed_with_ = failure;
  } catch (...) {
    // The caller's own error: the caller ended the transaction.
  }
}

// --- the transaction

void Writer::set_synchronous(bool full) {
  // FULL syncs the log at each commit, NORMAL only around checkpoints.
  connection_->execute(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  synchronous_ = full;
}

void Writer::begin(Sync sync) {
  const bool full = sync == Sync::as_stored && settings_.durability == Durability::full;
  if (full != synchronous_) set_synchronous(full);
  failed_with_ = nullptr;
  connection_->query(begin_sql).run();
  begin_ = mark();
  try {
    look_around();
  } catch (...) {
    roll_back();
    throw;
  }
  begin_ = mark();
}

void Writer::look_around() {
  kinds_.begin();
  tags_.begin();
  now_ = settings_.clock->now();
  const unsigned version = connection_->data_version();
  if (known_ && version == seen_version_) return;
  known_ = false;
  refresh();
  seen_version_ = version;
  known_ = true;
}

void Writer::refresh() {
  heads_.clear();
  kind_blocks_.clear();
  tags_.forget();
  participants_.forget();
  kinds_.refresh(*connection_);
  last_sequence_ = last_sequence(*connection_);
  read_participants(*connection_);
}

void Writer::commit() {
  {
    Query query = connection_->query(commit_sql);
    const int code = sqlite3_step(query.statement().get());
    if (code != SQLITE_DONE) {
      if (code == SQLITE_CONSTRAINT_FOREIGNKEY) {
        throw ConstraintViolated{
            "the commit failed: a deferred FOREIGN KEY constraint fails; nothing was written"};
      }
      // A transaction that is still open wasn't committed: for example, memory ran out before.
      if (connection_->in_transaction() || !leaves_commit_in_doubt(connection_->handle(), code))
        fail(connection_->handle(), code, "the commit");
      failure_ = std::string{"an earlier commit is in doubt ("} +
                 sqlite3_errmsg(connection_->handle()) +
                 "); reopen the store, and read whether it stands";
      throw CommitInDoubt{std::string{"the commit failed: "} +
                          sqlite3_errmsg(connection_->handle()) +
                          "; it may or may not stand; reopen the store and append again under "
                          "the same append_id; without one, read the stream first"};
    }
  }
  heads_.commit();
  heads_.trim();
  if (!kinds_.commit()) known_ = false;
  seen_version_ = connection_->data_version();
  lent_.let_go();
}

void Writer::roll_back() noexcept {
  connection_->roll_back();
  go_back_to(begin_);
  heads_.trim();
  lent_.let_go();
}

void Writer::go_back_to(const Mark& mark) noexcept {
  heads_.roll_back_to(mark.heads);
  kinds_.roll_back_to(mark.kinds);
  kind_blocks_.clear();
  tags_.roll_back();
  participants_.forget();
  last_sequence_ = mark.last_sequence;
}

void Writer::report_commit(std::span<CommitQueue::Ticket* const> group,
                           std::chrono::steady_clock::time_point began) const noexcept {
  const std::int64_t events = last_sequence_ - begin_.last_sequence;
  const auto written = std::count_if(group.begin(), group.end(), [](CommitQueue::Ticket* member) {
    return work_of(member).error == nullptr;
  });
  ledger::Writer::report_commit(events, written, began);
  if (events == 0) return;
  try {
    conventions().metrics->gauge("stela_store_wal_pages", checkpoints_.log_pages(), {});
  } catch (...) {
    // The commit stands, whether or not it can be reported.
  }
}

CheckpointResult Writer::checkpoint() {
  CheckpointResult result;
  run_alone([&](Connection&) {
    if (!failure_.empty()) throw StoreFailed{failure_};
    settings_.place->check();
    result = checkpoints_.run();
  });
  return result;
}

void Writer::close() noexcept {
  if (settings_.read_only || !owner_.is_this()) return;
  try {
    settings_.place->check();
    // If nobody else uses it, the database is left complete without its log.
    if (!lock_->try_lock()) return;
    checkpoints_.run_at_once();
    lock_->unlock();
  } catch (const Error&) {
    // The log stays; the next opening of the database reads it.
  }
}

}  // namespace stela::sqlite
