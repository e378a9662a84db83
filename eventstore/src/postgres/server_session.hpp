// Connections to a store's server, and which of its runs they are in.
#pragma once

#include "database/database.hpp"
#include "database/owner.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/outage.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace stela::postgres {

Uuid to_uuid(std::string_view bytes) noexcept;

/// Where SQL of the user's finds its tables first.
void find_first_in(Connection& connection, const std::string& schema);
/// Sets what a session has for its life; nothing behind a pooler. UsageError if it is behind one
/// and its options don't say so.
void set_up(Connection& connection);
/// Before a COMMIT, if SQL of the user's ran in the transaction: what it set for the session, it
/// set until then. The transaction's own settings are gone, too.
void add_restoring(Connection::Pipeline& pipeline, const Connection& connection);
/// Whether the server's process isn't the one that the connection was told of.
bool is_behind_pooler(Connection& connection);

/// What begins each transaction that writes, whatever the server's defaults are.
inline constexpr std::string_view begin_sql =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE";
/// What tells a standby, and the run.
inline constexpr std::string_view run_sql = "SELECT is_standby, run FROM stela.server_run()";

/// Begins a transaction by `begin` and what `more` adds, in one round trip. Behind a pooler it has
/// the settings of a session too, and the connection is told in which run it is.
void begin_transaction(Connection& connection, std::string_view begin, std::string_view doing,
                       FunctionRef<void(Connection::Pipeline&)> more);
/// What `run_sql` gave: the connection is told. False if the run isn't noted yet.
bool take_run(Connection& connection, const Result& row);

/// A connection ends with the server's run, so that it is in one run as long as it lives, unless a
/// dump takes the place of the tables meanwhile; behind a pooler each transaction is in a run of
/// its own. A standby has none. The tables must be there. Threads: one at a time.
struct ServerSession {
  explicit ServerSession(const ConnectionOptions& options);
  /// A store's first one: it isn't set up yet, and is asked for its run once it is used.
  struct First {};
  ServerSession(const ConnectionOptions& options, First) : connection{options} {}

  /// Asks in which run it is.
  void find_run();
  /// ConnectionLost if the standby that it was made to has been promoted since: it shows now what
  /// may be lost.
  void check_is_standby() const;
  /// What this run has committed is visible to all of its connections. What a run hadn't flushed
  /// when it ended is lost, and its numbers are given out again.
  Uuid run() const noexcept { return connection.run(); }

  Connection connection;
  /// When it was asked last.
  std::chrono::steady_clock::time_point run_found_at = {};
};

/// How many sessions a process reads over, unless its options say otherwise.
int default_readers() noexcept;

/// Sessions, opened as they are needed and kept. At most `readers` of them are lent at once: who
/// finds them all lent waits, for as long as the options have patience, and the first one first.
/// Only threads that others may wait for wait for nobody. They get a session beyond that number,
/// which is closed when they give it back.
/// Threads: any number at once.
class Sessions {
 public:
  /// `first` may be null.
  Sessions(ConnectionOptions options, int readers, std::unique_ptr<ServerSession> first);

  /// While one lives, its thread waits for no session of any store: others wait for what the thread
  /// holds. It also is urgent while it has a session, and inside a transaction.
  /// Threads: belongs to the thread that made it.
  class Urgent {
   public:
    Urgent() noexcept;
    ~Urgent();
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;

    static bool is_thread() noexcept;
  };

  /// A new one, that is neither counted nor kept. While the server can't be reached it tries again.
  std::unique_ptr<ServerSession> open();
  /// Runs statements that only read, and again on a new connection if one that was kept is lost.
  /// The run that they were in; nil on a standby. StoreBusy if no session becomes free in time.
  Uuid read(FunctionRef<void(Connection&)> work);
  /// The same of statements that have a transaction of their own.
  Uuid lend(FunctionRef<void(Connection&)> work);
  /// Runs `begin`, and again on a new connection if one that was kept is lost; then `work`, once,
  /// and rolls back what it leaves open. The run that it was in. StoreBusy as above.
  Uuid run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work);
  /// Asks all of them for their run, before they are used next. Else they are asked from time to
  /// time.
  void distrust() noexcept;
  /// Asks `session` for its run if that is due. It needn't be one of those that are kept.
  void check_run(ServerSession& session);
  const ConnectionOptions& options() const noexcept { return options_; }

 private:
  class Loan;
  struct Waiter;

  /// A place among the readers, and a session if one is kept. False: there is none, and the caller
  /// mustn't wait.
  bool take_place(std::unique_ptr<ServerSession>& session);
  void wait_for_place(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  void give_place(std::unique_ptr<ServerSession> session) noexcept;
  Uuid lend_on(Loan& loan, FunctionRef<void(Connection&)> work);
  void begin_on(Loan& loan, FunctionRef<void(Connection&)> begin);
  void drop_idle();

  const database::OwningProcess owner_;
  const ConnectionOptions options_;
  const std::size_t readers_;
  Outage outage_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<ServerSession>> idle_;
  /// Places, with a session or without one yet. Together with the idle ones they are never more
  /// than the readers, and nobody waits while one is free.
  std::size_t lent_ = 0;
  std::list<Waiter*> waiting_;
  std::chrono::steady_clock::time_point distrusted_at_ = {};
};

inline constexpr std::string_view lock_sql = "SELECT pg_advisory_xact_lock($1)";

/// The order lock of the store in `schema`.
std::int64_t order_lock(std::string_view schema) noexcept;

/// What writes of other modules share, and those that must be alone with the tables take for
/// themselves.
std::int64_t module_lock(std::string_view schema) noexcept;

/// The value of synchronous_commit.
std::string_view sync_word(database::Sync sync) noexcept;

/// StoreFailed if the server answered COMMIT with ROLLBACK.
void check_committed(const Result& commit);

}  // namespace stela::postgres
