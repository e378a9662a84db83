-- The database of a key store.

-- name: schema_with_events
-- doing: looking for events
-- gives: name text
SELECT schemaname::text AS name FROM pg_catalog.pg_tables WHERE tablename = 'stela_facts';

-- name: dead_rows
-- doing: looking at what vacuum left
-- gives: rows int
SELECT coalesce(sum(n_dead_tup), 0)::bigint AS rows FROM pg_catalog.pg_stat_all_tables
WHERE relid IN (to_regclass('stela_keys.key_encryption_keys'),
                to_regclass('stela_keys.subject_keys'));

-- name: set_up_key_session
-- doing: setting up a session
-- takes: lock_timeout text
SELECT set_config('lock_timeout', :lock_timeout, false),
       set_config('idle_in_transaction_session_timeout', '60000', false);
