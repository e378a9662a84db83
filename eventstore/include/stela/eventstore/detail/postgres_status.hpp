// The settings and state of a PostgreSQL server that a store depends on.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stela::postgres {

struct StandbyStatus {
  std::string name;
  /// "streaming", "catchup" …; empty if this role may not see it (pg_monitor may).
  std::string state;
  /// Whether commits wait for it; unset if this role may not see it.
  std::optional<bool> is_synchronous = {};
  /// How much of the log it has yet to replay, and how long that takes; unset if unknown.
  std::optional<std::int64_t> lag_bytes = {};
  std::optional<std::chrono::microseconds> lag = {};
};

/// A transaction that keeps the server from removing dead rows.
struct OpenTransaction {
  /// "session 4711 of app (psql)", "prepared transaction 'x' of app".
  std::string who;
  std::chrono::microseconds age{};
};

/// A lock that keeps everybody else from reading or writing a table.
struct TableLock {
  std::string table;
  /// In the form of `OpenTransaction::who`.
  std::string who;
  /// The age of its transaction.
  std::chrono::microseconds age{};
};

struct TableStatus {
  std::string table;
  /// By the server's estimate.
  std::int64_t live_rows = 0;
  std::int64_t dead_rows = 0;
  /// Includes the indexes.
  std::int64_t bytes = 0;
};

struct ServerStatus {
  /// "15.20".
  std::string version;
  std::string schema;
  /// Where the user's SQL creates its tables; empty: where the search_path says.
  std::string sql_schema;
  std::string role;
  bool is_standby = false;
  bool has_fsync = true;
  bool has_full_page_writes = true;
  bool has_autovacuum = true;
  /// "log_statement = 'all'": the settings that put the values of statements into the server's log;
  /// empty: none.
  std::string logged_values;
  std::string synchronous_commit;
  /// Empty: commits wait for no standby.
  std::string synchronous_standby_names;
  std::vector<StandbyStatus> standbys;
  std::int64_t connections = 0;
  std::int64_t max_connections = 0;
  /// The most connections that this store reads with.
  std::int64_t readers = 0;
  /// The connection goes through a pooler: PgBouncer.
  bool is_pooled = false;
  /// The oldest first; at most 5.
  std::vector<OpenTransaction> transactions;
  /// On tables of the store's schema, the oldest first; at most 5.
  std::vector<TableLock> locks;
  /// Tables of the store's schema that aren't locked.
  std::vector<TableStatus> tables;
  /// Transactions are read-only unless they say otherwise (default_transaction_read_only): for
  /// everybody, as on a full disk, or for this role or session.
  bool only_reads = false;
  bool role_only_reads = false;
  /// The rights of this role.
  bool may_append = false;
  bool may_relay = false;
  bool may_consume = false;
  bool may_project = false;
  /// "INSERT on streams": rights that this role lacks, and needs to read or for its other rights.
  std::vector<std::string> missing_rights;
};

/// Answers at once, even while commits wait for a standby. UsageError if `store` isn't on
/// PostgreSQL; StoreBusy and StoreFailed, as their names say.
/// Threads: any number at once.
STELA_EVENTSTORE_EXPORT ServerStatus server_status(Store& store);

}  // namespace stela::postgres
