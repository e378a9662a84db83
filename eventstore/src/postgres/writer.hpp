// Writing to a store on PostgreSQL: group commit under the order lock, and flushes outside it. The
// server judges appends: stela.append_group, append_group_plain and append_one, which are in
// sql/postgres/migrations/0001_events.sql.
#pragma once

#include "database/data_participant.hpp"
#include "database/database.hpp"
#include "deferred_batch.hpp"
#include "forgotten_keys.hpp"
#include "ledger/work.hpp"
#include "ledger/writer.hpp"
#include "postgres/durability.hpp"
#include "postgres/group.hpp"
#include "postgres/kinds.hpp"
#include "postgres/lane.hpp"
#include "postgres/reading.hpp"
#include "postgres/schema.hpp"
#include "postgres/server_session.hpp"
#include "postgres/settlement.hpp"
#include "postgres/standby_wait.hpp"
#include "postgres/tags.hpp"

#include <stela/eventstore/rows.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_store.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::postgres {

/// What must be durable before the caller is answered.
struct Rest {
  Uuid run = {};
  /// The group of the last COMMIT that was sent; nil if there was none.
  Uuid group = {};
  /// The caller wrote something.
  bool wrote = false;
  /// The answer to the COMMIT was lost.
  bool in_doubt = false;
  /// The caller ended the transaction: part of it may be committed.
  bool is_cut = false;
  /// The caller's result has no sequence: an append id.
  bool is_unnumbered = false;
  /// It is durable already.
  bool is_durable = false;
  std::int64_t sequence = 0;
};

struct WriteWork : ledger::Work {
  /// Statements in a separate transaction, under the order lock; exclusive.
  const FunctionRef<void(Connection&)>* statements = nullptr;
  Rest rest = {};
  /// The deadline for confirming its commit; unset before the commit is sent.
  std::chrono::steady_clock::time_point confirm_until = {};
  /// The ids that the request gave its events, to find them if the answer is lost.
  std::vector<Uuid> ids = {};
};

using DeferredWrites = DeferredBatch<WriteWork>;

/// Threads: `run` from any number; the rest belongs to the leader.
class Writer final : public ledger::Writer {
 public:
  struct Settings {
    bool is_read_only = false;
    std::string schema;
    std::chrono::milliseconds lock_timeout{5000};
    /// How long to try to settle a commit in doubt.
    std::chrono::milliseconds commit_timeout{30000};
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const Conventions* conventions = nullptr;
  };

  Writer(const Settings& settings, Sessions& sessions, Reading& reading, KindTable& kinds,
         Durability& durability);

  /// Carries out `work`, perhaps together with others' in one commit, and throws its error. Returns
  /// once the result is durable. UsageError from within a transaction of this store.
  void run(WriteWork& work);
  /// The same for deferred appends. Each keeps its own error.
  void run(DeferredWrites& batch) noexcept;
  /// Runs Stela's own statements in a separate transaction, under the order lock. CommitInDoubt if
  /// the answer to its commit is lost.
  void run_statements(FunctionRef<void(Connection&)> statements,
                      database::Sync sync = database::Sync::as_stored);
  /// While it lives, its thread is within a transaction of this store that the queue doesn't know
  /// of. Threads: only that one.
  class Inside {
   public:
    explicit Inside(const Writer& writer) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    /// Whether this thread is inside one.
    static bool is_in(const Writer& writer) noexcept;

   private:
    const Writer& writer_;
    const Inside* const outer_;
  };

  /// Records the types' declarations, in a transaction of its own; nothing if `check` throws.
  void declare_tags(
      std::span<const TagNeed> needs, FunctionRef<void(Connection&)> check = [](Connection&) {});

  // For the open transaction.
  /// The same, in the user's transaction. False if there was nothing to record.
  bool settle_tags(Connection& connection, std::span<const TagNeed> needs);
  Connection& connection() { return session_->connection; }
  Uuid session_run() const noexcept { return session_->run(); }
  KindTable& kinds() noexcept { return kinds_; }
  AppendResult append_inside(const AppendRequest& request, WriteWork& work);
  /// Takes the order lock, unless the transaction has it.
  void lock(WriteWork& work);
  /// How a part that throws is undone on the server. Without a savepoint, a failed statement ends
  /// the transaction.
  enum class Undo : std::uint8_t { by_savepoint, nothing };
  /// Runs `part` all or nothing: a caller that catches its exception may continue.
  void run_inside(WriteWork& work, FunctionRef<void()> part, Undo undo = Undo::by_savepoint);
  std::int64_t run_sql(WriteWork& work, std::string_view sql, std::span<const SqlValue> values,
                       Rows* rows);
  /// Lets a FailureWatch see that the lent connection was lost.
  void note_failure() noexcept;
  /// UsageError if the borrower of the connection ended the transaction, CommittedByCaller if it
  /// may be committed. Takes a round trip if the connection was lent.
  void check_open();
  /// UsageError if the borrower of the connection continued after a failure of its own.
  void check_usable();
  /// Lends the connection to the caller, until the transaction ends.
  PGconn* lend(WriteWork& work);
  /// Results depend on events up to this sequence.
  void note_read(std::int64_t sequence) noexcept { seen_ = std::max(seen_, sequence); }

 private:
  using State = TransactionOutcome::State;

  using Members = std::span<CommitQueue::Ticket* const>;

  ServerSession& session();
  /// The flush of appends on a lane remains to be done.
  CommitQueue::Left execute(Members group, Flight& flight) noexcept;
  void execute_appends(Members group, Flight& flight) noexcept;
  /// With a flight, the flush follows the group.
  void execute_group(Members members, Flight* flight) noexcept;
  void run_group(Members members, Flight* flight);
  /// Members that one function call carries out.
  struct Part {
    Members members;
    Group group;
    /// Always random, however event ids are made: two groups with one id would count as one commit.
    Uuid id = make_uuid();
    GroupAnswer answer = {};
  };
  Part part_of(Members members);
  /// Null if all are busy, or behind a pooler.
  Lane* find_lane() noexcept;
  /// Waits for the flush, on the former leader's thread, while others lead. If it fails, each
  /// member confirms its own commit.
  void land(Flight& flight, Members group) noexcept;
  /// True if the append may record a type's declaration, and conflict afterwards.
  bool may_declare(const AppendRequest& request) const;
  /// The declarations of these events' types that the database doesn't know yet. UsageError if
  /// the database contradicts them, or requires declarations that the request lacks.
  struct Undeclared {
    std::vector<TagFact> tags = {};
    PersonalTypes personal = {};

    bool is_empty() const noexcept { return tags.empty() && personal.empty(); }
  };
  void find_undeclared(const AppendRequest& request, Undeclared& all) const;
  static void declare(Connection& connection, const Undeclared& all);
  void declare_for(Members members);
  /// Part of the transaction was undone, along with its declarations.
  void forget_declared() noexcept;
  /// Commits in one transaction and one round trip. False, with nothing written, if the
  /// participants have changed, or the tables were replaced.
  bool commit_part(ServerSession& writing, Part& part, Flight* flight);
  /// Behind a pooler, the commit's answer tells its run.
  static void learn_run(ServerSession& writing, Members members, const sql::server_run::Row& row);
  void end_member(WriteWork& work, const Group& group, std::size_t number,
                  const GroupAnswer& answer) noexcept;
  void fail_group(Members members, const std::exception_ptr& error) noexcept;

  void execute_transaction(WriteWork& work) noexcept;
  void run_transaction(WriteWork& work);
  void carry_out(WriteWork& work);
  /// The results of a transaction are durable in its own run only.
  void find_run_again() noexcept;
  void begin();
  void begin_on_session();
  void commit(WriteWork& work);
  void commit_on_session();
  /// The tables were replaced since the transaction began: its reads may be lost.
  [[noreturn]] void fail_replaced();
  /// Whether the borrower of the connection ended the transaction.
  bool is_ended_by_caller() noexcept;
  bool is_committed_by_caller() noexcept;
  /// Refuses further writes, because the transaction is over.
  [[noreturn]] void fail_ended();
  void undo_savepoint();
  void roll_back() noexcept;
  AppendResult append_now(const AppendRequest& request, WriteWork& work);
  void tell_participants(const Group& group, const GroupAnswer& answer, WriteWork& work);
  void execute_statements(WriteWork& work) noexcept;

  /// One member's findings, which spare the others an attempt: each may last until a connection
  /// times out.
  struct Findings {
    /// Why the time ran out for a member. No further attempt is made after the deadline.
    std::string given_up = {};
    /// The last settled group in doubt.
    Uuid group = {};
    Settled settled = {};
  };
  /// Waits until the result can no longer be lost, or changes it.
  void confirm(WriteWork& work, Findings& findings) noexcept;
  /// True once the result is confirmed.
  bool try_to_confirm(WriteWork& work, const StandbyPatience& patience, Findings& findings);
  void settle(WriteWork& work, const StandbyPatience& patience, Findings& findings);
  void find_result(WriteWork& work, const Settled& settled);
  void end_unconfirmed(WriteWork& work, const std::string& why);
  /// Fills in the versions from when the append was first made.
  void complete_repeated(WriteWork& work);

  bool is_inside() const override { return queue_.is_leading() || Inside::is_in(*this); }
  void write(FunctionRef<void(database::Connection&)> statements) override;
  void run_between(FunctionRef<void()> work) override;
  void read_participants(database::Connection&) override { load_participants(connection()); }
  void insert_participant(database::Connection&, const Participant& participant) override;
  void delete_participant(database::Connection&, std::string_view name) override;
  void distrust() noexcept override { epoch_ = {}; }
  void check_room_for(const database::DataParticipant& participant) const override;
  void load_participants(Connection& connection);
  /// Null if there is none.
  database::DataParticipant* data_participant() const noexcept {
    return participants_.of_data().empty() ? nullptr : participants_.of_data().front();
  }
  /// ParticipantMissing if a required one isn't attached. If one seems to be missing, it first
  /// reads the database again.
  void check_participants(Connection& connection);

  const Settings settings_;
  const std::string lock_timeout_;
  /// The lock time-out under the order lock.
  const std::string locked_timeout_;
  const std::int64_t order_lock_;
  const std::int64_t bell_lock_;
  const std::int64_t module_lock_;
  Sessions& sessions_;
  Reading& reading_;
  KindTable& kinds_;
  Durability& durability_;
  Lanes lanes_;

  // Only the leader uses these.
  /// The session in use: the lane's, while appends go out on one.
  std::unique_ptr<ServerSession> session_;
  bool is_on_lane_ = false;
  /// The epoch of the known participants; nil if none are known.
  Uuid epoch_;
  /// Also as of that epoch.
  TagFacts tag_facts_;
  PersonalTypes personal_types_;
  // The open transaction's state.
  bool is_locked_ = false;
  /// The user's SQL has run in it, and may have deferred triggers and keys to the commit.
  bool may_defer_ = false;
  /// The server's number of the transaction, if its connection was lent.
  std::string lent_;
  /// The error of work that ended the transaction; null until that is noticed.
  std::exception_ptr ended_;
  /// The error if the user's SQL added or removed events; null until an append notices that.
  std::exception_ptr foreign_events_;
  /// The transaction has recorded types' declarations.
  bool has_declared_ = false;
  std::int64_t begin_sequence_ = 0;
  std::int64_t seen_ = 0;
};

/// The versions and numbers of a repeated append's events, compared with the request. UsageError if
/// the requests differ.
void complete_repeated(Connection& connection, const AppendRequest& request, AppendResult& result);

}  // namespace stela::postgres
