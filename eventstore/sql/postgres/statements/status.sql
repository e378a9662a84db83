-- The questions of `doctor` and `status` to a server.

-- name: server_settings
-- `read_only_source`: the origin of default_transaction_read_only; empty if it is off.
-- doing: reading the settings of the server
-- gives: version text, role text, is_standby bool, fsync text, full_page_writes text,
--        autovacuum text, synchronous_commit text, synchronous_standby_names text, connections int,
--        max_connections int, pid int, read_only_source text, logged_values text
SELECT current_setting('server_version') AS version, current_user::text AS role,
       pg_is_in_recovery() AS is_standby, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('autovacuum') AS autovacuum,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('synchronous_standby_names') AS synchronous_standby_names,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity
        WHERE backend_type = 'client backend') AS connections,
       current_setting('max_connections')::bigint AS max_connections, pg_backend_pid() AS pid,
       (SELECT CASE WHEN s.setting <> 'on' OR pg_is_in_recovery() THEN '' ELSE s.source END
        FROM pg_catalog.pg_settings AS s
        WHERE s.name = 'default_transaction_read_only') AS read_only_source,
       (SELECT coalesce(string_agg(s.name || ' = ' || quote_literal(s.setting), ', '
                                   ORDER BY s.name), '')
        FROM pg_catalog.pg_settings AS s
        WHERE s.name = 'log_statement' AND s.setting IN ('mod', 'all')
           OR s.name = 'log_parameter_max_length_on_error' AND s.setting <> '0'
           OR s.name = 'log_min_duration_statement' AND s.setting <> '-1') AS logged_values;

-- name: standbys
-- doing: asking for the standbys
-- gives: name text, state text, is_synchronous bool?, lag_bytes int?, lag_us int?
SELECT coalesce(nullif(application_name, ''), client_addr::text, pid::text) AS name,
       coalesce(state, '') AS state, sync_state IN ('sync', 'quorum') AS is_synchronous,
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint AS lag_bytes,
       (extract(epoch FROM replay_lag) * 1000000)::bigint AS lag_us
FROM pg_catalog.pg_stat_replication ORDER BY 1;

-- name: open_transactions
-- doing: asking for open transactions
-- gives: who text, age_us int
SELECT who, (extract(epoch FROM clock_timestamp() - began) * 1000000)::bigint AS age_us
FROM (SELECT concat('session ', pid, ' of ', usename,
                    CASE WHEN application_name <> '' THEN ' (' || application_name || ')' END)
               AS who, xact_start AS began
      FROM pg_catalog.pg_stat_activity
      WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
      UNION ALL
      SELECT concat('prepared transaction ''', gid, ''' of ', owner), prepared
      FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()) AS t
ORDER BY began LIMIT 5;

-- name: table_locks
-- doing: asking for locks
-- takes: schema text
-- gives: table_name text, who text, age_us int
SELECT c.relname::text AS table_name, concat('session ', a.pid, ' of ', a.usename,
         CASE WHEN a.application_name <> '' THEN ' (' || a.application_name || ')' END) AS who,
       (extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.query_start, now()))
        * 1000000)::bigint AS age_us
FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.mode = 'AccessExclusiveLock' AND l.granted AND a.datname = current_database()
  AND c.relkind = 'r' AND c.relnamespace =
      (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = :schema)
ORDER BY age_us DESC, 1 LIMIT 5;

-- name: table_sizes
-- Omits locked tables, whose size can't be read until the lock is released.
-- doing: asking for the sizes of tables
-- takes: schema text
-- gives: table_name text, live_rows int, dead_rows int, bytes int
SELECT relname::text AS table_name, n_live_tup AS live_rows, n_dead_tup AS dead_rows,
       pg_total_relation_size(relid) AS bytes
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = :schema
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks AS l WHERE l.relation = relid
                    AND l.mode = 'AccessExclusiveLock' AND l.granted)
ORDER BY relname;

-- name: rights
-- What the statements of readers, of appends, and of the modules beside them do with each table,
-- and whether this role may.
-- doing: asking for the role's rights
-- takes: schema text, sql_schema text
-- gives: use text, what text, may bool
SELECT u.use, r.name || ' on ' || c.relname AS what, has_table_privilege(c.oid, r.name) AS may
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL (
  SELECT 'read' AS use, ARRAY['SELECT'] AS rights
  UNION ALL
  SELECT 'append', ARRAY['INSERT']
  WHERE c.relname IN ('events', 'event_tags', 'tag_index', 'streams', 'event_kinds', 'append_ids',
                      'append_groups', 'tag_types', 'outbox_messages')
  UNION ALL
  SELECT 'append', ARRAY['INSERT', 'UPDATE', 'DELETE'] WHERE c.relname = 'snapshots'
  UNION ALL
  SELECT m.use, ARRAY['INSERT', 'UPDATE', 'DELETE']
  FROM (VALUES ('relay', 'outbox\_%'), ('consume', 'inbox\_%'), ('project', 'projection%'))
    AS m(use, name) WHERE c.relname LIKE m.name) AS u
CROSS JOIN LATERAL unnest(u.rights) AS r(name)
WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = :schema)
  AND c.relkind = 'r'
UNION ALL
SELECT 'read', 'EXECUTE on ' || p.proname, has_function_privilege(p.oid, 'EXECUTE')
FROM pg_catalog.pg_proc AS p
WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = :schema)
  AND p.prorettype <> 'trigger'::regtype
UNION ALL
SELECT 'append', 'USAGE on schema ' || :sql_schema,
       coalesce(has_schema_privilege(to_regnamespace(quote_ident(:sql_schema)), 'USAGE'), false)
WHERE :sql_schema <> ''
ORDER BY 2;
