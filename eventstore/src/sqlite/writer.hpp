// The one connection that writes: group commit, under the write lock.
#pragma once

#include "commit_queue.hpp"
#include "database/database.hpp"
#include "database/event_page.hpp"
#include "database/sqlite/connection.hpp"
#include "deferred_batch.hpp"
#include "ledger/participants.hpp"
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
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::sqlite {

using database::Sync;

/// One append, or one piece of the caller's own work, on its way through the writer.
struct WriteWork : CommitQueue::Ticket {
  /// What to do: one of the four.
  const AppendRequest* request = nullptr;
  const FunctionRef<void(Transaction&)>* user = nullptr;
  const FunctionRef<void(Connection&)>* statements = nullptr;
  /// Outside any transaction; exclusive.
  const FunctionRef<void(Connection&)>* outside = nullptr;

  /// Whether the caller wants `events`.
  bool wants_events = false;
  Sync sync = Sync::as_stored;
  /// The stored form of the request's context, encoded before the lock is taken.
  std::string metadata = {};
  std::string correlation = {};
  /// Of events with a context of their own.
  std::deque<std::string> own_metadata = {};

  AppendResult result = {};
  std::exception_ptr error = {};
  /// What its transaction and the savepoints in it come to.
  OpenOutcomes outcomes = {};
  /// What was appended. They point into the request, or (for the caller's own work) into `kept`.
  std::vector<StoredEvent> events = {};
  struct Kept {
    std::vector<std::unique_ptr<EventPage>> pages;
    std::vector<std::unique_ptr<const StreamId>> streams;
  };
  Kept kept = {};
  /// To be written, or without a value dropped, when the transaction is over.
  std::vector<std::pair<StreamId, std::optional<StoredSnapshot>>> snapshots = {};
};

using DeferredWrites = DeferredBatch<WriteWork>;

/// Threads: `run` from any number; everything below it belongs to the thread that leads.
class STELA_EVENTSTORE_EXPORT Writer final : public Reading {
 public:
  struct Settings {
    Durability durability = Durability::full;
    std::chrono::milliseconds busy_timeout{5000};
    int checkpoint_pages = 4000;
    bool read_only = false;
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const Conventions* conventions = nullptr;
    /// What is written to a file that isn't there any more is lost.
    const Place* place = nullptr;
  };

  Writer(std::unique_ptr<Connection> connection, std::unique_ptr<WriteLock> lock, KindTable& kinds,
         const Settings& settings);
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Carries out `work`, perhaps together with others' in one commit, and throws what it ended
  /// with. UsageError from within a transaction of this store; StoreBusy if another thread holds
  /// the line of writers for longer than the busy time-out.
  void run(WriteWork& work);
  /// The same of deferred appends. Each is left with the error that it ended with.
  void run(DeferredWrites& batch) noexcept;

  /// Runs statements of Stela's own in a transaction of theirs.
  void run_statements(FunctionRef<void(Connection&)> statements, Sync sync = Sync::as_stored);

  /// The same, perhaps on another writer's thread and in one commit with what others write: for
  /// statements that call nobody else's code.
  void run_along(FunctionRef<void(Connection&)> statements, Sync sync);

  /// Runs `work` on the writing connection, alone and under the write lock, outside any
  /// transaction: for work that has transactions of its own.
  void run_alone(FunctionRef<void(Connection&)> work);

  /// Runs `work` on the writing connection, outside any transaction: how a database that only one
  /// connection can see is read. StoreBusy as `run`.
  void read(FunctionRef<void(Connection&)> work) override;

  /// As `read`, but waits for its turn however long that takes: for what must not fail.
  void tidy(FunctionRef<void(Connection&)> work);

  /// Moves the whole log into the database, waiting for whoever reads an older state.
  CheckpointResult checkpoint();

  /// Nothing is written any more: what was committed may not be on the disk, for this reason.
  void give_up(const std::string& reason);

  /// `prepare` runs in the transaction that registers it. UsageError if one of its name is
  /// attached.
  void attach(
      TransactionParticipant& participant,
      FunctionRef<void(Connection&)> prepare = [](Connection&) {});
  void attach(database::DataParticipant& participant, FunctionRef<void(Connection&)> prepare);
  void detach(const Participant& participant);
  /// UsageError if a participant of this name is attached. For the thread that leads.
  void refuse_second(std::string_view name) const { participants_.refuse_second(name); }
  void forget_participant(std::string_view name);

  /// This process knows `migrations` of `module`, and is refused once the database requires more.
  void know_schema(std::string_view module, std::size_t migrations);

  /// True if a participant calls code of the user's: then appends must be exclusive.
  bool has_user_code() const noexcept { return participants_.has_user_code(); }

  /// What an event depends on that is read on this thread; null if it is committed.
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) {
    return queue_.is_leading() && running_ != nullptr ? running_->outcomes.of(sequence) : nullptr;
  }

  Connection& connection() noexcept { return *connection_; }
  KindTable& kinds() noexcept { return kinds_; }
  /// Inside a transaction.
  TagGuard& tags() noexcept { return tags_; }
  std::int64_t next_sequence() const noexcept { return last_sequence_ + 1; }
  /// When the transaction began, which is when its events are recorded.
  Timestamp now() const noexcept { return now_; }
  const Conventions& conventions() const noexcept { return *settings_.conventions; }

  /// Runs `part` of the caller's work inside its transaction, all or nothing: whoever catches what
  /// it throws may go on. UsageError if the caller ended the transaction, or undid what Stela
  /// wrote.
  void run_inside(WriteWork& work, FunctionRef<void()> part);
  /// UsageError if the caller's work ended the transaction, or undid what Stela wrote.
  void check_transaction();
  /// Keeps the failure that is being handled, if it is the store's and has ended the transaction.
  void note_failure() noexcept;
  AppendResult append_inside(const AppendRequest& request, WriteWork& work);
  /// The caller may have changed anything: nothing that is known of the database still holds.
  void distrust() noexcept { known_ = false; }
  /// The connection, for SQL of the caller's own until the transaction ends.
  sqlite3* lend() noexcept;
  /// Runs one statement of the caller's own, of which nothing is to be feared.
  std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values, Rows* rows);

 private:
  using State = TransactionOutcome::State;

  /// What is known at a point of the transaction, to go back to.
  struct Mark {
    std::size_t heads = 0;
    std::size_t kinds = 0;
    std::int64_t last_sequence = 0;
  };

  /// What an append gets from a participant that is data.
  struct PlannedRow {
    database::DataParticipant* participant;
    database::DataRow row;
  };

  void refuse_unless_writable() const;
  /// Registers it, and lists it in the same transaction: an append between the two would be
  /// refused.
  void register_participant(const Participant& participant, FunctionRef<void(Connection&)> prepare,
                            FunctionRef<void()> list);
  /// Hands it to whoever leads, and returns when it is done, or couldn't be.
  void submit(WriteWork& work, std::chrono::milliseconds patience);
  void run_outside(FunctionRef<void(Connection&)> work, std::chrono::milliseconds patience);
  void execute(std::span<CommitQueue::Ticket* const> group) noexcept;
  void execute_outside(WriteWork& work) noexcept;
  void execute_in_transaction(std::span<CommitQueue::Ticket* const> group);
  void begin(Sync sync);
  /// What time it is, and what others wrote since the last transaction.
  void look_around();
  void commit();
  void roll_back() noexcept;
  Mark mark() const noexcept { return {heads_.mark(), kinds_.mark(), last_sequence_}; }
  void go_back_to(const Mark& mark) noexcept;
  void open_savepoint();
  void undo_inside(const Mark& before) noexcept;
  TransactionOutcome::State outcome_of_failure() const noexcept;
  /// The transaction of the group has ended: with its error, if there is one.
  void end(std::span<CommitQueue::Ticket* const> group, State state,
           const std::exception_ptr& error = {}) noexcept;
  void set_synchronous(bool full);
  void run_member(WriteWork& work, bool in_group);
  void carry_out(WriteWork& work);
  void run_user(WriteWork& work);
  bool is_transaction_over() const noexcept;
  /// CommittedByCaller if whoever was lent the connection has committed what the work did so far.
  void refuse_committed() const;
  /// A transaction that there was no memory to roll back.
  void end_left_open();
  void refresh();
  void check_schema(std::string_view participant) const;
  void report_commit(std::span<CommitQueue::Ticket* const> group,
                     std::chrono::steady_clock::time_point began) const noexcept;
  void report_failure(const std::exception_ptr& error) const noexcept;
  void close() noexcept;

  AppendResult append_now(const AppendRequest& request, WriteWork& work);
  void read_participants();
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

  const database::OwningProcess owner_;
  CommitQueue queue_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<WriteLock> lock_;
  KindTable& kinds_;
  const Settings settings_;

  // The leader's own, from here on.
  UuidGenerator ids_;
  OwnTables own_tables_;
  StreamHeads heads_;
  KindBlocks kind_blocks_;
  TagGuard tags_;
  std::int64_t last_sequence_ = 0;
  Mark begin_{};
  Timestamp now_{};
  unsigned seen_version_ = 0;
  bool known_ = false;
  /// The work that is being carried out.
  WriteWork* running_ = nullptr;
  /// What made the store end the open transaction, if it did.
  std::exception_ptr failed_with_;
  TransactionEnd lent_;
  bool synchronous_ = false;
  bool appending_ = false;
  /// Set once a commit is in doubt: this store must be reopened.
  std::string failure_;
  Checkpoints checkpoints_;
  ledger::Participants participants_;
  mutable std::mutex schemas_mutex_;
  /// Guarded by schemas_mutex_: a module is opened while others write.
  std::map<std::string, std::int64_t, std::less<>> known_schemas_;
  std::vector<StoredEvent> appended_;
  std::vector<PlannedRow> planned_;
};

}  // namespace stela::sqlite
