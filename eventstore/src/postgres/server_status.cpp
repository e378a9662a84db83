#include <stela/eventstore/detail/postgres_status.hpp>

#include "postgres/core.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

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
      "current_setting('max_connections')::bigint, pg_backend_pid(), "
      "(SELECT CASE WHEN s.setting <> 'on' OR pg_is_in_recovery() THEN '' ELSE s.source END "
      "FROM pg_catalog.pg_settings AS s WHERE s.name = 'default_transaction_read_only'), "
      "(SELECT coalesce(string_agg(s.name || ' = ' || quote_literal(s.setting), ', ' "
      "ORDER BY s.name), '') FROM pg_catalog.pg_settings AS s "
      "WHERE s.name = 'log_statement' AND s.setting IN ('mod', 'all') "
      "OR s.name = 'log_parameter_max_length_on_error' AND s.setting <> '0' "
      "OR s.name = 'log_min_duration_statement' AND s.setting <> '-1')",
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
  const std::string_view source = row.bytes(0, 11);
  constexpr std::array<std::string_view, 4> own{"client", "database user", "session", "user"};
  status.role_only_reads = std::find(own.begin(), own.end(), source) != own.end();
  status.logged_values = text(row, 0, 12);
  status.only_reads = !source.empty() && !status.role_only_reads;
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

void read_locks(Connection& connection, ServerStatus& status) {
  Parameters parameters;
  parameters.add(status.schema);
  const Result rows = connection.query(
      "SELECT c.relname::text, concat('session ', a.pid, ' of ', a.usename, "
      "CASE WHEN a.application_name <> '' THEN ' (' || a.application_name || ')' END), "
      "(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.query_start, now())) "
      "* 1000000)::bigint AS age FROM pg_catalog.pg_locks AS l "
      "JOIN pg_catalog.pg_class AS c ON c.oid = l.relation "
      "JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid "
      "WHERE l.mode = 'AccessExclusiveLock' AND l.granted AND a.datname = current_database() "
      "AND c.relkind = 'r' AND c.relnamespace = "
      "(SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) "
      "ORDER BY age DESC, 1 LIMIT 5",
      std::move(parameters), "asking for locks");
  for (int row = 0; row < rows.rows(); ++row) {
    status.locks.push_back(
        {text(rows, row, 0), text(rows, row, 1), microseconds{rows.integer(row, 2)}});
  }
}

void read_tables(Connection& connection, ServerStatus& status) {
  Parameters parameters;
  parameters.add(status.schema);
  const Result rows = connection.query(
      "SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid) "
      "FROM pg_catalog.pg_stat_user_tables WHERE schemaname = $1 "
      // Its size isn't told before the lock is given back.
      "AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks AS l WHERE l.relation = relid "
      "AND l.mode = 'AccessExclusiveLock' AND l.granted) ORDER BY relname",
      std::move(parameters), "asking for the sizes of tables");
  for (int row = 0; row < rows.rows(); ++row) {
    status.tables.push_back({.table = text(rows, row, 0),
                             .live_rows = rows.integer(row, 1),
                             .dead_rows = rows.integer(row, 2),
                             .bytes = rows.integer(row, 3)});
  }
}

/// What the statements of readers, of appends, and of the modules beside them do with each table,
/// and whether this role may.
constexpr std::string_view rights_sql =
    "SELECT u.use, r.name || ' on ' || c.relname, has_table_privilege(c.oid, r.name) "
    "FROM pg_catalog.pg_class AS c "
    "CROSS JOIN LATERAL (SELECT 'read' AS use, ARRAY['SELECT'] AS rights "
    "UNION ALL SELECT 'append', ARRAY['INSERT'] WHERE c.relname IN ('events', 'event_tags', "
    "'tag_index', 'streams', 'event_kinds', 'append_ids', 'append_groups', 'tag_types', "
    "'outbox_messages') "
    "UNION ALL SELECT 'append', ARRAY['INSERT', 'UPDATE', 'DELETE'] WHERE c.relname = 'snapshots' "
    "UNION ALL SELECT m.use, ARRAY['INSERT', 'UPDATE', 'DELETE'] FROM (VALUES "
    "('relay', 'outbox\\_%'), ('consume', 'inbox\\_%'), ('project', 'projection%')) "
    "AS m(use, name) WHERE c.relname LIKE m.name) AS u "
    "CROSS JOIN LATERAL unnest(u.rights) AS r(name) "
    "WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) "
    "AND c.relkind = 'r' "
    "UNION ALL SELECT 'read', 'EXECUTE on ' || p.proname, has_function_privilege(p.oid, 'EXECUTE') "
    "FROM pg_catalog.pg_proc AS p "
    "WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) "
    "AND p.prorettype <> 'trigger'::regtype "
    "UNION ALL SELECT 'append', 'USAGE on schema ' || $2, "
    "coalesce(has_schema_privilege(to_regnamespace(quote_ident($2)), 'USAGE'), false) "
    "WHERE $2 <> '' ORDER BY 2";

/// What a role is for shows in the right to the first thing that it would write.
struct Use {
  std::string_view name;
  std::string_view first;
  bool ServerStatus::*may;
};
constexpr std::array uses{Use{"append", "INSERT on events", &ServerStatus::may_append},
                          Use{"relay", "UPDATE on outbox_partitions", &ServerStatus::may_relay},
                          Use{"consume", "INSERT on inbox_readers", &ServerStatus::may_consume},
                          Use{"project", "UPDATE on projections", &ServerStatus::may_project}};

void read_rights(Connection& connection, ServerStatus& status) {
  Parameters parameters;
  parameters.add(status.schema).add(status.sql_schema);
  const Result rows =
      connection.query(rights_sql, std::move(parameters), "asking for the role's rights");
  for (int row = 0; row < rows.rows(); ++row) {
    if (rows.integer(row, 2) == 0) continue;
    for (const Use& use : uses) {
      if (rows.bytes(row, 0) == use.name && rows.bytes(row, 1) == use.first) {
        status.*use.may = true;
      }
    }
  }
  for (int row = 0; row < rows.rows(); ++row) {
    if (rows.integer(row, 2) != 0) continue;
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const Use& one) { return rows.bytes(row, 0) == one.name; });
    if (use == uses.end() || status.*use->may) {
      status.missing_rights.push_back(text(rows, row, 1));
    }
  }
}

}  // namespace

ServerStatus server_status(Store& store) {
  const auto* const core = dynamic_cast<Core*>(&store.database());
  if (core == nullptr) throw UsageError{"this store isn't on PostgreSQL"};
  // Not a read of the store's, which would wait until what it saw is durable; and a new connection,
  // as others have the settings of the time when they were made.
  Connection connection{core->connection_options()};
  ServerStatus status;
  status.schema = connection.options().schema;
  status.sql_schema = connection.options().sql_schema;
  status.readers = core->readers();
  read_settings(connection, status);
  read_standbys(connection, status);
  read_transactions(connection, status);
  read_locks(connection, status);
  read_tables(connection, status);
  read_rights(connection, status);
  return status;
}

}  // namespace stela::postgres
