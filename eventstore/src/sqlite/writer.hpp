// The only writing connection: group commit, under the write lock. Writer::commit makes a group
// durable.
#pragma once

#include "database/database.hpp"
#include "database/sqlite/connection.hpp"
#include "deferred_batch.hpp"
#include "ledger/work.hpp"
#include "ledger/writer.hpp"
#include "sqlite/checkpoints.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite/kinds.hpp"
#include "sqlite/own_tables.hpp"
#include "sqlite/place.hpp"
#include "sqlite/reading.hpp"
#include "sqlite/stream_heads.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/transaction_end.hpp"
#include "sqlite/write_lock.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::sqlite {

using database::Sync;

struct WriteWork : ledger::Work {
  const FunctionRef<void(Connection&)>* statements = nullptr;
  /// Work outside any transaction; exclusive.
  const FunctionRef<void(Connection&)>* outside = nullptr;
  std::string correlation = {};
  /// The metadata of events with a context of their own.
  std::deque<std::string> own_metadata = {};
};

using DeferredWrites = DeferredBatch<WriteWork>;

/// Threads: `run` from any number; everything after it belongs to the leader.
class STELA_EVENTSTORE_EXPORT Writer final : public ledger::Writer, public Reading {
 public:
  struct Settings {
    Durability durability = Durability::full;
    std::chrono::milliseconds busy_timeout{5000};
    int checkpoint_pages = 4000;
    bool read_only = false;
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const Conventions* conventions = nullptr;
    /// Writes to a file that was removed would be lost.
    const Place* place = nullptr;
  };

  Writer(std::unique_ptr<Connection> connection, std::unique_ptr<WriteLock> lock, KindTable& kinds,
         const Settings& settings);
  ~Writer() override;

  /// Carries out `work`, perhaps together with others' in one commit, and throws its error.
  /// UsageError from within a transaction of this store; StoreBusy if another thread holds the
  /// writers' queue for longer than the busy time-out.
  void run(WriteWork& work);
  /// The same for deferred appends. Each keeps its own error.
  void run(DeferredWrites& batch) noexcept;

  /// Runs Stela's own statements in a separate transaction.
  void run_statements(FunctionRef<void(Connection&)> statements, Sync sync = Sync::as_stored);

  /// The same, perhaps on another writer's thread and in one commit with other writes: for
  /// statements that call no foreign code.
  void run_along(FunctionRef<void(Connection&)> statements, Sync sync);

  /// Runs `work` on the writing connection, alone and under the write lock, outside any
  /// transaction: for work with transactions of its own.
  void run_alone(FunctionRef<void(Connection&)> work);

  /// Runs `work` on the writing connection, outside any transaction: for reading a private
  /// database, which has no other connection. StoreBusy as for `run`.
  void read(FunctionRef<void(Connection&)> work) override;

  /// As `read`, but waits for its turn without a limit: for work that must not fail.
  void tidy(FunctionRef<void(Connection&)> work);

  /// Moves the entire log into the database, waiting for readers of an older state.
  CheckpointResult checkpoint();

  /// Refuses all further writes: for this reason, earlier commits may not be on the disk.
  void give_up(const std::string& reason);

  /// The outcome that an event read on this thread depends on; null if it is committed.
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) {
    return queue_.is_leading() && running_ != nullptr ? running_->outcomes.of(sequence) : nullptr;
  }

  Connection& connection() noexcept { return *connection_; }
  KindTable& kinds() noexcept { return kinds_; }
  /// Only inside a transaction.
  TagGuard& tags() noexcept { return tags_; }
  std::int64_t next_sequence() const noexcept { return last_sequence_ + 1; }
  /// The start of the transaction, which is the recording time of its events.
  Timestamp now() const noexcept { return now_; }

  /// Runs `part` of the caller's work inside its transaction, all or nothing: a caller that catches
  /// its exception may continue. UsageError if the caller ended the transaction, or undid Stela's
  /// writes.
  void run_inside(WriteWork& work, FunctionRef<void()> part);
  /// UsageError if the caller's work ended the transaction, or undid Stela's writes.
  void check_transaction();
  /// Keeps the failure being handled, if it is the store's and ended the transaction.
  void note_failure() noexcept;
  AppendResult append_inside(const AppendRequest& request, WriteWork& work);
  /// Discards all cached state, because the caller may have changed anything.
  void distrust() noexcept override { known_ = false; }
  /// The connection, for the caller's own SQL until the transaction ends.
  sqlite3* lend() noexcept;
  /// A user's single statement; it can't end the transaction.
  std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values, Rows* rows);

 private:
  using State = TransactionOutcome::State;

  /// The cached state at a point of the transaction, to return to.
  struct Mark {
    std::size_t heads = 0;
    std::size_t kinds = 0;
    std::int64_t last_sequence = 0;
  };

  /// A data participant's row for an append.
  struct PlannedRow {
    database::DataParticipant* participant;
    database::DataRow row;
  };

  /// Hands it to the leader, and returns when it was carried out or failed.
  void submit(WriteWork& work, std::chrono::milliseconds patience);
  void run_outside(FunctionRef<void(Connection&)> work, std::chrono::milliseconds patience);
  void execute(std::span<CommitQueue::Ticket* const> group) noexcept;
  void execute_outside(WriteWork& work) noexcept;
  void execute_in_transaction(std::span<CommitQueue::Ticket* const> group);
  void begin(Sync sync);
  /// Reads the time, and checks for other writers since the last transaction.
  void look_around();
  void commit();
  void roll_back() noexcept;
  Mark mark() const noexcept { return {heads_.mark(), kinds_.mark(), last_sequence_}; }
  void go_back_to(const Mark& mark) noexcept;
  void open_savepoint();
  void undo_inside(const Mark& before) noexcept;
  TransactionOutcome::State outcome_of_failure() const noexcept;
  /// Ends the group's transaction: with its error, if there is one.
  void end(std::span<CommitQueue::Ticket* const> group, State state,
           const std::exception_ptr& error = {}) noexcept;
  void set_synchronous(bool full);
  void run_member(WriteWork& work, bool in_group);
  void carry_out(WriteWork& work);
  void run_user(WriteWork& work);
  bool is_transaction_over() const noexcept;
  /// CommittedByCaller if the borrower of the connection committed the work's changes so far.
  void refuse_committed() const;
  /// Ends a transaction that couldn't be rolled back for lack of memory.
  void end_left_open();
  void refresh();
  void check_schema(std::string_view participant) const;
  void report_commit(std::span<CommitQueue::Ticket* const> group,
                     std::chrono::steady_clock::time_point began) const noexcept;
  void close() noexcept;

  void write(FunctionRef<void(database::Connection&)> statements) override;
  void run_between(FunctionRef<void()> work) override;
  void read_participants(database::Connection& connection) override;
  void insert_participant(database::Connection& connection,
                          const Participant& participant) override;
  void delete_participant(database::Connection& connection, std::string_view name) override;

  AppendResult append_now(const AppendRequest& request, WriteWork& work);
  void check_condition(const AppendCondition& condition, const WriteWork& work);
  void check_versions(std::span<const StreamAppend> streams);
  StreamVersion append_stream(const StreamAppend& append, const AppendRequest& request,
                              WriteWork& work);
  void insert_event(const StreamAppend& append, const NewEvent& event, StreamHead& head,
                    const AppendRequest& request, WriteWork& work);
  void plan_rows(const StreamAppend& append, const NewEvent& event, std::int64_t stream,
                 std::string_view metadata);
  void keep_events(WriteWork& work);
  StreamHeads::Entry& head_of(const StreamId& stream);
  bool repeat(const AppendRequest& request, AppendResult& result);

  std::unique_ptr<Connection> connection_;
  std::unique_ptr<WriteLock> lock_;
  KindTable& kinds_;
  const Settings settings_;

  // Only the leader uses these.
  OwnTables own_tables_;
  StreamHeads heads_;
  KindBlocks kind_blocks_;
  TagGuard tags_;
  Mark begin_{};
  Timestamp now_{};
  unsigned seen_version_ = 0;
  bool known_ = false;
  /// The work being carried out.
  WriteWork* running_ = nullptr;
  /// Why the store ended the open transaction, if it did.
  std::exception_ptr failed_with_;
  TransactionEnd lent_;
  bool synchronous_ = false;
  /// Set once a commit is in doubt: the store must be reopened.
  std::string failure_;
  Checkpoints checkpoints_;
  std::vector<StoredEvent> appended_;
  std::vector<PlannedRow> planned_;
};

}  // namespace stela::sqlite
