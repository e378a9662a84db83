// What a PostgreSQL server says of itself, as far as a store depends on it.
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
  /// "streaming", "catchup" …; empty if this role may not see it: pg_monitor may.
  std::string state;
  /// Whether commits wait for it; unset if this role may not see it.
  std::optional<bool> is_synchronous = {};
  /// How much of the log it hasn't replayed yet, and how long that takes; unset if it isn't known.
  std::optional<std::int64_t> lag_bytes = {};
  std::optional<std::chrono::microseconds> lag = {};
};

/// A transaction that keeps the server from removing dead rows.
struct OpenTransaction {
  /// "session 4711 of app (psql)", "prepared transaction 'x' of app".
  std::string who;
  std::chrono::microseconds age{};
};

/// A lock on a table that lets nobody else read or write it.
struct TableLock {
  std::string table;
  /// As of an open transaction.
  std::string who;
  /// How old its transaction is.
  std::chrono::microseconds age{};
};

struct TableStatus {
  std::string table;
  /// By the server's estimate.
  std::int64_t live_rows = 0;
  std::int64_t dead_rows = 0;
  /// With its indexes.
  std::int64_t bytes = 0;
};

struct ServerStatus {
  /// "15.20".
  std::string version;
  std::string schema;
  /// Where SQL of the user's makes its tables; empty: where the search_path says.
  std::string sql_schema;
  std::string role;
  bool is_standby = false;
  bool has_fsync = true;
  bool has_full_page_writes = true;
  bool has_autovacuum = true;
  /// "log_statement = 'all'": the settings by which the values of statements come into its log;
  /// empty: none.
  std::string logged_values;
  std::string synchronous_commit;
  /// Empty: commits wait for no standby.
  std::string synchronous_standby_names;
  std::vector<StandbyStatus> standbys;
  std::int64_t connections = 0;
  std::int64_t max_connections = 0;
  /// Over how many connections this store reads, at most.
  std::int64_t readers = 0;
  /// A pooler stands between: PgBouncer.
  bool is_pooled = false;
  /// The oldest first; at most 5.
  std::vector<OpenTransaction> transactions;
  /// On tables of the store's schema, the oldest first; at most 5.
  std::vector<TableLock> locks;
  /// Those of the store's schema that nobody has locked.
  std::vector<TableStatus> tables;
  /// Transactions only read unless they say otherwise (default_transaction_read_only): for all, as
  /// where a disk is full, or for this role or session.
  bool only_reads = false;
  bool role_only_reads = false;
  /// What this role has the rights for.
  bool may_append = false;
  bool may_relay = false;
  bool may_consume = false;
  bool may_project = false;
  /// "INSERT on streams": what it may not do, and needs to read or for what else it may do.
  std::vector<std::string> missing_rights;
};

/// Asks at once, also while commits wait for a standby. UsageError if `store` isn't on PostgreSQL;
/// StoreBusy and StoreFailed, as their names say.
/// Threads: any number at once.
STELA_EVENTSTORE_EXPORT ServerStatus server_status(Store& store);

}  // namespace stela::postgres
