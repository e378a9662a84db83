-- What sessions and transactions are set to, the run that they are in, and their locks.

-- name: commit_unflushed
-- The commit doesn't wait for the disk.
SELECT set_config('synchronous_commit', 'off', true);

-- name: commit_confirmed
-- Comes before the COMMIT of a transaction that waits for a standby: the server then reports a
-- missing confirmation, whatever messages the role asks for.
SELECT set_config('synchronous_commit', 'on', true),
       set_config('client_min_messages', 'warning', true);

-- name: set_lock_timeout
-- takes: timeout text
SELECT set_config('lock_timeout', :timeout, true);

-- name: set_append
-- takes: lock_timeout text
SELECT set_config('synchronous_commit', 'off', true),
       set_config('lock_timeout', :lock_timeout, true);

-- name: set_commit
-- takes: synchronous_commit text, lock_timeout text
SELECT set_config('synchronous_commit', :synchronous_commit, true),
       set_config('lock_timeout', :lock_timeout, true);

-- name: set_transaction
-- If a client with a lock dies, others wait at most this long.
-- takes: synchronous_commit text, lock_timeout text
SELECT set_config('synchronous_commit', :synchronous_commit, true),
       set_config('lock_timeout', :lock_timeout, true),
       set_config('idle_in_transaction_session_timeout', '60000', true);

-- name: end_if_idle
SELECT set_config('idle_in_transaction_session_timeout', '60000', true);

-- name: set_up_session
-- Not behind a pooler, where session settings would affect other clients. JIT compilation of a
-- page's query takes longer than reading the page. Keepalives let a server that holds locks, and
-- waits for the rest of a client's data, notice that the client's host is gone.
-- doing: setting up a session
-- takes: path text, pid int
-- gives: pid int
SELECT pg_backend_pid() AS pid, CASE WHEN pg_backend_pid() = :pid THEN
       set_config('jit', 'off', false) || set_config('search_path', :path, false) ||
       set_config('tcp_keepalives_idle', '10', false) ||
       set_config('tcp_keepalives_interval', '5', false) ||
       set_config('tcp_keepalives_count', '3', false) END AS settings;

-- name: restore_session
-- takes: path text
SELECT set_config('jit', 'off', false), set_config('search_path', :path, false),
       set_config('tcp_keepalives_idle', '10', false),
       set_config('tcp_keepalives_interval', '5', false),
       set_config('tcp_keepalives_count', '3', false);

-- name: set_pooled_transaction
-- takes: path text
SELECT set_config('jit', 'off', true), set_config('search_path', :path, true);

-- name: set_up_lane
-- An append turns synchronous_commit off for itself; the flush after it doesn't. A plan from when
-- the tables were small must also suit large ones. One large allocation makes the server keep that
-- much memory, instead of faulting it in again for each call.
-- doing: setting up a session for appends
-- takes: lock_timeout text
SELECT set_config('synchronous_commit', 'on', false),
       set_config('client_min_messages', 'warning', false),
       set_config('lock_timeout', :lock_timeout, false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('default_transaction_read_only', 'off', false),
       set_config('default_transaction_deferrable', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_memoize', 'off', false),
       set_config('enable_material', 'off', false), length(repeat('x', 6000000));

-- name: users_schemas
-- The schemas in the search_path, without those of this and other stores.
-- doing: finding the user's schemas
-- takes: schema text
-- gives: path text
SELECT coalesce(string_agg(quote_ident(s.name), ', ' ORDER BY s.at), '') AS path
FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, at)
WHERE s.name <> :schema AND to_regclass(quote_ident(s.name) || '.stela_migrations') IS NULL;

-- name: backend
-- doing: looking for a pooler
-- gives: pid int
SELECT pg_backend_pid() AS pid;

-- name: server_run
-- doing: finding the run
-- gives: is_standby bool, run uuid?
SELECT is_standby, run FROM stela.server_run();

-- name: note_run
SELECT stela.note_run();

-- name: lock
-- takes: lock int
SELECT pg_advisory_xact_lock(:lock);

-- name: lock_shared
-- takes: lock int
SELECT pg_advisory_xact_lock_shared(:lock);

-- name: try_to_lock
-- takes: lock int
-- gives: is_mine bool
SELECT pg_try_advisory_xact_lock(:lock) AS is_mine;

-- name: last_sequence
-- doing: reading the last sequence
-- gives: last int
SELECT coalesce(max(sequence), 0) AS last FROM stela.events;

-- name: flush
-- Writes a commit record, which the server flushes with all records before it.
SELECT pg_logical_emit_message(true, 'stela', '');

-- name: flush_through
-- All visible commits have their records before this one's.
-- gives: last int
SELECT (SELECT coalesce(max(sequence), 0) FROM stela.events) AS last,
       pg_logical_emit_message(true, 'stela', '') AS written;

-- name: prune_groups
-- doing: pruning the groups of appends
-- takes: at_once int4
SELECT stela.prune_groups(:at_once);

-- name: clock
-- doing: asking for the time
-- gives: now time
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now;
