// Connections to a store's server, and which of its runs they are in.
#pragma once

#include "database/database.hpp"
#include "database/owner.hpp"
#include "database/postgres/connection.hpp"
#include "postgres/outage.hpp"

#include <stela/framework/function_ref.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace stela::postgres {

Uuid to_uuid(std::string_view bytes) noexcept;

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

/// Sessions, opened as they are needed and kept.
/// Threads: any number at once.
class Sessions {
 public:
  static constexpr std::size_t max_idle = 8;

  explicit Sessions(ConnectionOptions options)
      : options_{std::move(options)}, outage_{options_.patience} {}

  /// A new one, that isn't kept. While the server can't be reached it tries again.
  std::unique_ptr<ServerSession> open();
  /// Runs statements that only read, and again on a new connection if one that was kept is lost.
  /// The run that they were in; nil on a standby.
  Uuid read(FunctionRef<void(Connection&)> work);
  /// The same of statements that have a transaction of their own.
  Uuid lend(FunctionRef<void(Connection&)> work);
  /// Runs `begin`, and again on a new connection if one that was kept is lost; then `work`, once,
  /// and rolls back what it leaves open. The run that it was in.
  Uuid run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work);
  /// Asks all of them for their run, before they are used next. Else they are asked from time to
  /// time.
  void distrust() noexcept;
  /// Asks `session` for its run if that is due. It needn't be one of those that are kept.
  void check_run(ServerSession& session);
  const ConnectionOptions& options() const noexcept { return options_; }

 private:
  std::unique_ptr<ServerSession> take_idle();
  Uuid lend_one(std::unique_ptr<ServerSession> session, FunctionRef<void(Connection&)> work);
  void drop_idle();
  void keep(std::unique_ptr<ServerSession> session);
  std::unique_ptr<ServerSession> begun(FunctionRef<void(Connection&)> begin);

  const database::OwningProcess owner_;
  const ConnectionOptions options_;
  Outage outage_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<ServerSession>> idle_;
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
