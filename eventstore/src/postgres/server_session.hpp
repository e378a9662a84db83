// Connections to a store's server, and which of its runs they are in.
#pragma once

#include "database/database.hpp"
#include "database/owner.hpp"
#include "database/postgres/connection.hpp"

#include <stela/framework/function_ref.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace stela::postgres {

Uuid to_uuid(std::string_view bytes) noexcept;

/// Where Stela's own statements find its tables.
std::string own_path(std::string_view schema);

/// UsageError if the connection goes through a pooler. The schemas in which it found tables before,
/// but for Stela's.
std::string set_up(Connection& connection);

/// A connection ends with the server's run, so that it is in one run as long as it lives. The
/// tables must be there. Threads: one at a time.
struct ServerSession {
  explicit ServerSession(const ConnectionOptions& options);

  /// What this run has committed is visible to all of its connections. What a run hadn't flushed
  /// when it ended is lost, and its numbers are given out again.
  Uuid run() const noexcept { return connection.run(); }

  Connection connection;
  /// Where SQL of the user's finds its tables.
  std::string users_path;
};

/// Sessions, opened as they are needed and kept.
/// Threads: any number at once.
class Sessions {
 public:
  static constexpr std::size_t max_idle = 8;

  explicit Sessions(ConnectionOptions options) : options_{std::move(options)} {}

  /// Runs `work`, and again on a new connection if one that was kept is lost. The run that it was
  /// in.
  Uuid read(FunctionRef<void(Connection&)> work);
  /// Runs `begin`, and again on a new connection if one that was kept is lost; then `work`, once,
  /// and rolls back what it leaves open. The run that it was in.
  Uuid run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work);
  const ConnectionOptions& options() const noexcept { return options_; }

 private:
  std::unique_ptr<ServerSession> take_idle();
  Uuid read_on(std::unique_ptr<ServerSession> session, FunctionRef<void(Connection&)> work);
  void drop_idle();
  void keep(std::unique_ptr<ServerSession> session);
  std::unique_ptr<ServerSession> begun(FunctionRef<void(Connection&)> begin);

  const database::OwningProcess owner_;
  const ConnectionOptions options_;
  std::mutex mutex_;
  /// Guarded by mutex_.
  std::vector<std::unique_ptr<ServerSession>> idle_;
};

/// What begins each transaction that writes, whatever the server's defaults are.
inline constexpr std::string_view begin_sql =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE";
inline constexpr std::string_view lock_sql = "SELECT pg_advisory_xact_lock($1)";

/// The order lock of the store in `schema`.
std::int64_t order_lock(std::string_view schema) noexcept;

/// What writes of other modules share, and those that must be alone with the tables take for
/// themselves.
std::int64_t module_lock(std::string_view schema) noexcept;

/// The value of synchronous_commit.
std::string_view sync_word(database::Sync sync) noexcept;
/// Ends a transaction of statements of Stela's own. CommitInDoubt if the answer is lost, unless it
/// may be lost itself.
void commit_statements(Connection& connection, database::Sync sync);

/// StoreFailed if the server answered COMMIT with ROLLBACK.
void check_committed(const Result& commit);
/// StoreBusy if the server warned of the commit that it has just confirmed: a standby didn't.
void check_confirmed(Connection& connection);

}  // namespace stela::postgres
