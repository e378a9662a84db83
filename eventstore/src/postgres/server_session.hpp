// Connections to a store's server, and the server's run that each is in.
#pragma once

#include "database/database.hpp"
#include "database/owner.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/outage.hpp"
#include "postgres_sql/sessions.hpp"

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

/// Makes the user's SQL look for its tables in `schema` first.
void find_first_in(Connection& connection, const std::string& schema);
/// Applies a session's lasting settings; none behind a pooler. UsageError if there is a pooler that
/// the options don't mention.
void set_up(Connection& connection);
/// Before a COMMIT, if the user's SQL ran in the transaction: undoes its session settings. The
/// transaction's own settings are gone, too.
void add_restoring(Connection::Pipeline& pipeline, const Connection& connection);
/// Whether the server's process differs from the one that the connection was told of.
bool is_behind_pooler(Connection& connection);

/// Begins each writing transaction, whatever the server's defaults are.
inline constexpr std::string_view begin_sql =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE";

/// Begins a transaction by `begin` and the statements that `more` adds, in one round trip. Behind a
/// pooler it also applies the session's settings, and records the connection's run.
void begin_transaction(Connection& connection, std::string_view begin, std::string_view doing,
                       FunctionRef<void(Connection::Pipeline&)> more);
/// Tells the connection in which run it is. False if the run isn't noted yet.
bool take_run(Connection& connection, const sql::server_run::Row& row);

/// A connection stays in one run of the server, unless a restored dump replaces the tables; behind
/// a pooler each transaction has its own run. A standby has none. The tables must exist. Threads:
/// one at a time.
struct ServerSession {
  explicit ServerSession(const ConnectionOptions& options);
  /// Tags a store's first session: it isn't set up yet, and is asked for its run at its first use.
  struct First {};
  ServerSession(const ConnectionOptions& options, First) : connection{options} {}

  /// Asks for the run.
  void find_run();
  /// ConnectionLost if the standby of this connection has been promoted: it may now show events
  /// that can be lost.
  void check_is_standby() const;
  /// The commits of this run are visible to all its connections. When a run ends, unflushed commits
  /// are lost, and their numbers are assigned again.
  Uuid run() const noexcept { return connection.run(); }

  Connection connection;
  /// The time of the last look at the run.
  std::chrono::steady_clock::time_point run_found_at = {};
};

/// How many sessions a process reads with by default.
int default_readers() noexcept;

/// Sessions, opened on demand and kept. At most `readers` of them are lent at once: when all are
/// lent, threads wait in order of arrival, for as long as the options allow. Urgent threads don't
/// wait: they get an extra session, which is closed when they return it.
/// Threads: any number at once.
class Sessions {
 public:
  /// `first` may be null.
  Sessions(ConnectionOptions options, int readers, std::unique_ptr<ServerSession> first);

  /// While one lives, its thread waits for no session of any store, because others wait for
  /// resources that the thread holds. A thread is also urgent while it has a session, and inside a
  /// transaction.
  /// Threads: belongs to the thread that made it.
  class Urgent {
   public:
    Urgent() noexcept;
    ~Urgent();
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;

    static bool is_thread() noexcept;
  };

  /// Opens a new session, neither counted nor kept. Retries while the server can't be reached.
  std::unique_ptr<ServerSession> open();
  /// Runs statements that only read, again on a new connection if a kept one is lost. Returns their
  /// run; nil on a standby. StoreBusy if no session becomes free in time.
  Uuid read(FunctionRef<void(Connection&)> work);
  /// The same for statements with a transaction of their own.
  Uuid lend(FunctionRef<void(Connection&)> work);
  /// Runs `begin`, again on a new connection if a kept one is lost; then runs `work` once, and
  /// rolls back any transaction left open. Returns its run. StoreBusy as above.
  Uuid run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work);
  /// Makes all sessions ask for their run before their next use.
  void distrust() noexcept;
  /// Asks for the run of `session` if it is unknown or distrusted. It may be a session that isn't
  /// kept.
  void check_run(ServerSession& session);
  const ConnectionOptions& options() const noexcept { return options_; }

 private:
  class Loan;
  struct Waiter;

  /// Takes a place among the readers, and a kept session if there is one. False if no place is free
  /// and the caller must not wait.
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
  /// Places in use, with or without a session yet. Together with the idle sessions they never
  /// exceed the readers, and nobody waits while one is free.
  std::size_t lent_ = 0;
  std::list<Waiter*> waiting_;
  std::chrono::steady_clock::time_point distrusted_at_ = {};
};

/// The order lock of the store in `schema`.
std::int64_t order_lock(std::string_view schema) noexcept;

/// Other modules' writes share this lock; work that must be alone with the tables takes it
/// exclusively.
std::int64_t module_lock(std::string_view schema) noexcept;

/// The value for synchronous_commit.
std::string_view sync_word(database::Sync sync) noexcept;

/// StoreFailed if the server answered COMMIT with ROLLBACK.
void check_committed(const Result& commit);

}  // namespace stela::postgres
