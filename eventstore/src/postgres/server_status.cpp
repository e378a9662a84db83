#include <stela/eventstore/postgres_status.hpp>

#include "postgres/core.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::postgres {
namespace {

using std::chrono::microseconds;

std::string text(const Result& rows, int row, int column) {
  return std::string{rows.bytes(row, column)};
}

bool is_on(const Result& rows, int column) {
  return rows.bytes(0, column) == "on";
}

void read_settings(Connection& connection, ServerStatus& status) {
  const Result row = connection.query(
      "SELECT current_setting('server_version'), current_user::text, pg_is_in_recovery(), "
      "current_setting('fsync'), current_setting('full_page_writes'), "
      "current_setting('autovacuum'), current_setting('synchronous_commit'), "
      "current_setting('synchronous_standby_names'), "
      "(SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'), "
      "current_setting('max_connections')::bigint, pg_backend_pid()",
      {}, "reading the settings of the server");
  status.version = text(row, 0, 0);
  status.version.resize(std::min(status.version.find(' '), status.version.size()));
  status.role = text(row, 0, 1);
  status.is_standby = row.integer(0, 2) != 0;
  status.has_fsync = is_on(row, 3);
  status.has_full_page_writes = is_on(row, 4);
  status.has_autovacuum = is_on(row, 5);
  status.synchronous_commit = text(row, 0, 6);
  status.synchronous_standby_names = text(row, 0, 7);
  status.connections = row.integer(0, 8);
  status.max_connections = row.integer(0, 9);
  status.is_pooled = row.integer(0, 10) != PQbackendPID(connection.handle());
}

void read_standbys(Connection& connection, ServerStatus& status) {
  if (status.is_standby) return;
  const Result rows = connection.query(
      "SELECT coalesce(nullif(application_name, ''), client_addr::text, pid::text), "
      "coalesce(state, ''), sync_state IN ('sync', 'quorum'), "
      "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint, "
      "(extract(epoch FROM replay_lag) * 1000000)::bigint "
      "FROM pg_catalog.pg_stat_replication ORDER BY 1",
      {}, "asking for the standbys");
  for (int row = 0; row < rows.rows(); ++row) {
    StandbyStatus standby{.name = text(rows, row, 0), .state = text(rows, row, 1)};
    if (!rows.is_null(row, 2)) standby.is_synchronous = rows.integer(row, 2) != 0;
    if (!rows.is_null(row, 3)) standby.lag_bytes = rows.integer(row, 3);
    if (!rows.is_null(row, 4)) standby.lag = microseconds{rows.integer(row, 4)};
    status.standbys.push_back(std::move(standby));
  }
}

void read_transactions(Connection& connection, ServerStatus& status) {
  const Result rows = connection.query(
      "SELECT who, (extract(epoch FROM clock_timestamp() - began) * 1000000)::bigint FROM ("
      "SELECT concat('session ', pid, ' of ', usename, "
      "CASE WHEN application_name <> '' THEN ' (' || application_name || ')' END) AS who, "
      "xact_start AS began FROM pg_catalog.pg_stat_activity "
      "WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() "
      "AND backend_type = 'client backend' "
      "UNION ALL SELECT concat('prepared transaction ''', gid, ''' of ', owner), prepared "
      "FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()) AS t "
      "ORDER BY began LIMIT 5",
      {}, "asking for open transactions");
  for (int row = 0; row < rows.rows(); ++row) {
    status.transactions.push_back({text(rows, row, 0), microseconds{rows.integer(row, 1)}});
  }
}

void read_tables(Connection& connection, ServerStatus& status) {
  Parameters parameters;
  parameters.add(status.schema);
  const Result rows = connection.query(
      "SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid) "
      "FROM pg_catalog.pg_stat_user_tables WHERE schemaname = $1 ORDER BY relname",
      std::move(parameters), "asking for the sizes of tables");
  for (int row = 0; row < rows.rows(); ++row) {
    status.tables.push_back({.table = text(rows, row, 0),
                             .live_rows = rows.integer(row, 1),
                             .dead_rows = rows.integer(row, 2),
                             .bytes = rows.integer(row, 3)});
  }
}

/// What the statements of appends and of relays do with each table.
constexpr std::string_view rights_sql =
    "SELECT r.name || ' on ' || c.relname FROM pg_catalog.pg_class AS c "
    "CROSS JOIN LATERAL unnest(CASE "
    "WHEN c.relname IN ('events', 'event_tags', 'tag_index', 'streams', 'event_kinds', "
    "'append_ids', 'append_groups', 'stela_runs') "
    "THEN ARRAY['SELECT', 'INSERT'] "
    "WHEN c.relname = 'snapshots' OR c.relname LIKE 'outbox\\_%' "
    "THEN ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] "
    "ELSE ARRAY['SELECT'] END) WITH ORDINALITY AS r(name, at) "
    "WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) "
    "AND c.relkind = 'r' AND NOT has_table_privilege(c.oid, r.name) "
    "UNION ALL SELECT 'EXECUTE on ' || p.proname FROM pg_catalog.pg_proc AS p "
    "WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) "
    "AND p.prorettype <> 'trigger'::regtype "
    "AND NOT has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1";

void read_rights(Connection& connection, ServerStatus& status) {
  Parameters parameters;
  parameters.add(status.schema);
  const Result rows =
      connection.query(rights_sql, std::move(parameters), "asking for the role's rights");
  for (int row = 0; row < rows.rows(); ++row) status.missing_rights.push_back(text(rows, row, 0));
}

}  // namespace

ServerStatus server_status(Store& store) {
  const auto* const core = dynamic_cast<Core*>(&store.database());
  if (core == nullptr) throw UsageError{"this store isn't on PostgreSQL"};
  // Not a read of the store's, which would wait until what it saw is durable.
  Connection connection{core->connection_options()};
  ServerStatus status;
  status.schema = connection.options().schema;
  read_settings(connection, status);
  read_standbys(connection, status);
  read_transactions(connection, status);
  read_tables(connection, status);
  read_rights(connection, status);
  return status;
}

}  // namespace stela::postgres
