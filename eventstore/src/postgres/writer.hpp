// Writing to a store on PostgreSQL: group commit under the order lock, and flushes outside it.
#pragma once

#include "commit_queue.hpp"
#include "database/data_participant.hpp"
#include "database/database.hpp"
#include "database/event_page.hpp"
#include "deferred_batch.hpp"
#include "forgotten_keys.hpp"
#include "ledger/participants.hpp"
#include "postgres/durability.hpp"
#include "postgres/group.hpp"
#include "postgres/kinds.hpp"
#include "postgres/lane.hpp"
#include "postgres/readers.hpp"
#include "postgres/schema.hpp"
#include "postgres/server_session.hpp"
#include "postgres/settlement.hpp"
#include "postgres/standby_wait.hpp"
#include "postgres/tags.hpp"

#include <stela/eventstore/rows.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/transaction_outcome.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::postgres {

/// What the answer to a caller rests on, and what must be done before it is given.
struct Rest {
  Uuid run = {};
  /// Of the commit that the server was asked for last; nil if there was none.
  Uuid group = {};
  /// The caller wrote something.
  bool wrote = false;
  /// The answer to the commit was lost.
  bool in_doubt = false;
  /// The caller ended the transaction: a part of it may be committed.
  bool is_cut = false;
  /// What the caller saw has no sequence: an append id.
  bool is_unnumbered = false;
  /// It is durable: nothing must be done.
  bool is_durable = false;
  std::int64_t sequence = 0;
};

/// One append, or one piece of the caller's own work, on its way through the writer.
struct WriteWork : CommitQueue::Ticket {
  /// What to do: one of the three.
  const AppendRequest* request = nullptr;
  const FunctionRef<void(Transaction&)>* user = nullptr;
  /// In a transaction of their own, under the order lock; exclusive.
  const FunctionRef<void(Connection&)>* statements = nullptr;
  database::Sync sync = database::Sync::as_stored;
  /// Whether the caller wants `events`.
  bool wants_events = false;
  /// The stored form of the request's context, encoded before the lock is taken.
  std::string metadata = {};

  AppendResult result = {};
  std::exception_ptr error = {};
  Rest rest = {};
  /// Until when its commit is made sure of; not set before it was sent.
  std::chrono::steady_clock::time_point confirm_until = {};
  /// Those that the request gave its events, to find them if the answer is lost.
  std::vector<Uuid> ids = {};
  OpenOutcomes outcomes = {};
  /// What was appended. They point into `kept`.
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

/// Threads: `run`, `attach`, `detach` and `forget_participant` from any number; the rest belongs to
/// the thread that leads.
class Writer {
 public:
  struct Settings {
    bool is_read_only = false;
    std::string schema;
    std::chrono::milliseconds lock_timeout{5000};
    /// How long a commit in doubt is asked for.
    std::chrono::milliseconds commit_timeout{30000};
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const Conventions* conventions = nullptr;
  };

  Writer(const Settings& settings, Sessions& sessions, Reading& reading, KindTable& kinds,
         Durability& durability);

  /// Carries out `work`, perhaps together with others' in one commit, and throws what it ended
  /// with. Nothing is answered before it is durable. UsageError from within a transaction of this
  /// store.
  void run(WriteWork& work);
  /// The same of deferred appends. Each is left with the error that it ended with.
  void run(DeferredWrites& batch) noexcept;
  /// Runs statements of Stela's own in a transaction of theirs, under the order lock. CommitInDoubt
  /// if the answer to its commit is lost.
  void run_statements(FunctionRef<void(Connection&)> statements,
                      database::Sync sync = database::Sync::as_stored);
  /// UsageError from within a transaction of this store, and of a store that only reads.
  void refuse_unless_writable() const;
  /// While it lives, its thread is within a transaction of this store that the line knows nothing
  /// of. Threads: that one.
  class Inside {
   public:
    explicit Inside(const Writer& writer) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    /// Whether this thread is.
    static bool is_in(const Writer& writer) noexcept;

   private:
    const Writer& writer_;
    const Inside* const outer_;
  };

  /// This process knows so many of the module's migrations.
  void know_schema(std::string_view module, std::size_t migrations);
  void attach(TransactionParticipant& participant, FunctionRef<void(Connection&)> prepare);
  void attach(database::DataParticipant& participant, FunctionRef<void(Connection&)> prepare);
  void detach(const Participant& participant);
  void forget_participant(std::string_view name);
  /// UsageError if a participant of this name is attached. For the thread that leads.
  void refuse_second(std::string_view name) const { participants_.refuse_second(name); }
  bool has_user_code() const noexcept { return participants_.has_user_code(); }

  /// Notes what the types declare, in a transaction of its own. If `check` throws, nothing is
  /// noted.
  void declare_tags(
      std::span<const TagNeed> needs, FunctionRef<void(Connection&)> check = [](Connection&) {});

  // For the open transaction.
  /// The same, in that of the user. False if there was nothing to note.
  bool settle_tags(Connection& connection, std::span<const TagNeed> needs);
  Connection& connection() { return session_->connection; }
  Uuid session_run() const noexcept { return session_->run(); }
  KindTable& kinds() noexcept { return kinds_; }
  const Conventions& conventions() const noexcept { return *settings_.conventions; }
  AppendResult append_inside(const AppendRequest& request, WriteWork& work);
  /// Takes the order lock, unless the transaction has it.
  void lock(WriteWork& work);
  /// What the server undoes of a part that throws. A statement that fails without a savepoint ends
  /// the transaction.
  enum class Undo : std::uint8_t { by_savepoint, nothing };
  /// Runs `part` all or nothing: whoever catches what it throws may go on.
  void run_inside(WriteWork& work, FunctionRef<void()> part, Undo undo = Undo::by_savepoint);
  std::int64_t run_sql(WriteWork& work, std::string_view sql, std::span<const SqlValue> values,
                       Rows* rows);
  /// Lets a FailureWatch see that the connection was lost while it was lent.
  void note_failure() noexcept;
  /// UsageError if whoever was lent the connection ended the transaction, CommittedByCaller if it
  /// may be committed. A round trip, if it was lent.
  void check_open();
  /// UsageError if whoever was lent the connection went on after a failure of his.
  void check_usable();
  /// For the caller's own use, until the transaction ends.
  PGconn* lend(WriteWork& work);
  /// What was read rests on this sequence.
  void note_read(std::int64_t sequence) noexcept { seen_ = std::max(seen_, sequence); }

 private:
  using State = TransactionOutcome::State;

  using Members = std::span<CommitQueue::Ticket* const>;

  ServerSession& session();
  /// What is left is the flush of appends that went out on a lane.
  CommitQueue::Left execute(Members group, Flight& flight) noexcept;
  void execute_appends(Members group, Flight& flight) noexcept;
  /// With a flight its flush goes behind the group.
  void execute_group(Members members, Flight* flight) noexcept;
  void run_group(Members members, Flight* flight);
  /// Members that one call of a function carries out.
  struct Part {
    Members members;
    Group group;
    /// Random, whatever makes the ids of events: two groups of one id would be one commit.
    Uuid id = make_uuid();
    GroupAnswer answer = {};
  };
  Part part_of(Members members);
  /// Null if all are busy, or behind a pooler.
  Lane* find_lane() noexcept;
  /// Waits for the flush. If it fails, each member makes sure for itself. On the thread that has
  /// led, while others lead.
  void land(Flight& flight, Members group) noexcept;
  /// True if the append may note what a type declares, and conflict after that.
  bool may_declare(const AppendRequest& request) const;
  /// What the types of these events declare, and the database doesn't know yet. UsageError if they
  /// carry other tags there, or may not be appended by those who don't know them.
  struct Undeclared {
    std::vector<TagFact> tags = {};
    PersonalTypes personal = {};

    bool is_empty() const noexcept { return tags.empty() && personal.empty(); }
  };
  void find_undeclared(const AppendRequest& request, Undeclared& all) const;
  static void declare(Connection& connection, const Undeclared& all);
  void declare_for(Members members);
  /// A part of the transaction was undone, and what it declared.
  void forget_declared() noexcept;
  /// In one transaction, and one round trip. False if who takes part has changed, or the tables
  /// were replaced: nothing was written then.
  bool commit_part(ServerSession& writing, Part& part, Flight* flight);
  /// Behind a pooler the commit's own answer says in which run it was.
  static void learn_run(ServerSession& writing, Members members, const Result& row);
  void end_member(WriteWork& work, const Group& group, std::size_t number,
                  const GroupAnswer& answer) noexcept;
  void fail_group(Members members, const std::exception_ptr& error) noexcept;

  void execute_transaction(WriteWork& work) noexcept;
  void run_transaction(WriteWork& work);
  void carry_out(WriteWork& work);
  /// As what a transaction read is durable in that run only.
  void find_run_again() noexcept;
  void begin();
  void begin_on_session();
  void commit(WriteWork& work);
  void commit_on_session();
  /// Other tables than those that the transaction began with: what it read may be lost.
  [[noreturn]] void fail_replaced();
  /// Whoever was lent the connection ended the transaction on it.
  bool is_ended_by_caller() noexcept;
  bool is_committed_by_caller() noexcept;
  /// The transaction is over, and nothing more is written in it.
  [[noreturn]] void fail_ended();
  void undo_savepoint();
  void roll_back() noexcept;
  AppendResult append_now(const AppendRequest& request, WriteWork& work);
  void tell_participants(const Group& group, const GroupAnswer& answer, WriteWork& work);
  void execute_statements(WriteWork& work) noexcept;

  void keep_event(const StoredEvent& event, WriteWork& work);
  void report_commit(std::int64_t events, std::int64_t written,
                     std::chrono::steady_clock::time_point began) const noexcept;
  void report_failure(const std::exception_ptr& error) const noexcept;

  /// What the first of several has found out, for the others: each attempt may last until a
  /// connection times out.
  struct Findings {
    /// Why there was no time left to make sure of one. After the deadline no attempt is made then.
    std::string given_up = {};
    /// The group in doubt that was settled last.
    Uuid group = {};
    Settled settled = {};
  };
  /// Waits until the answer can't be lost any more, or becomes another one.
  void confirm(WriteWork& work, Findings& findings) noexcept;
  /// True when that is so.
  bool try_to_confirm(WriteWork& work, const StandbyPatience& patience, Findings& findings);
  void settle(WriteWork& work, const StandbyPatience& patience, Findings& findings);
  void find_result(WriteWork& work, const Settled& settled);
  void end_unconfirmed(WriteWork& work, const std::string& why);
  /// The versions that an append had when it was made.
  void complete_repeated(WriteWork& work);

  void register_participant(const Participant& participant, FunctionRef<void(Connection&)> prepare,
                            FunctionRef<void()> list);
  void load_participants(Connection& connection);
  /// Null if there is none.
  database::DataParticipant* data_participant() const noexcept {
    return participants_.of_data().empty() ? nullptr : participants_.of_data().front();
  }
  /// ParticipantMissing if one that the database requires isn't attached, after another look at the
  /// database if one seems to be missing.
  void check_participants(Connection& connection);

  const database::OwningProcess owner_;
  const Settings settings_;
  const std::string lock_timeout_;
  /// The same under the order lock.
  const std::string locked_timeout_;
  const std::int64_t order_lock_;
  const std::int64_t bell_lock_;
  const std::int64_t module_lock_;
  Sessions& sessions_;
  Reading& reading_;
  KindTable& kinds_;
  Durability& durability_;
  /// The next leader wakes up while the one before it waits for the flush.
  CommitQueue queue_{1};
  Lanes lanes_;
  std::mutex known_mutex_;
  /// Guarded by known_mutex_.
  KnownModules known_;

  // The leader's own, from here on.
  UuidGenerator ids_;
  /// The one in use: while appends go out on a lane, its.
  std::unique_ptr<ServerSession> session_;
  bool is_on_lane_ = false;
  /// The epoch of the participants that are known; nil if none are.
  Uuid epoch_;
  /// As of that epoch, too.
  TagFacts tag_facts_;
  PersonalTypes personal_types_;
  ledger::Participants participants_;
  // Of the open transaction.
  bool is_locked_ = false;
  /// SQL of the user's has run in it, and may have left triggers and keys to the commit.
  bool may_defer_ = false;
  /// The server's number of it, if its connection was lent.
  std::string lent_;
  /// What the work fails with if it ended the transaction; null until that is noticed.
  std::exception_ptr ended_;
  /// What it fails with if SQL of the user's added or took back events; null until an append
  /// notices that.
  std::exception_ptr foreign_events_;
  /// It has noted what types declare.
  bool has_declared_ = false;
  bool appending_ = false;
  std::int64_t begin_sequence_ = 0;
  std::int64_t last_sequence_ = 0;
  std::int64_t seen_ = 0;
};

/// The versions and numbers of events that an append made, compared with the request that repeats
/// it; UsageError if it was another one.
void complete_repeated(Connection& connection, const AppendRequest& request, AppendResult& result);

}  // namespace stela::postgres
