-- The database of a key store.

-- name: schema_with_events
-- doing: looking for events
-- gives: name text
SELECT schemaname::text AS name FROM pg_catalog.pg_tables WHERE tablename = 'stela_facts';

-- name: set_up_key_session
-- doing: setting up a session
-- takes: lock_timeout text
SELECT set_config('lock_timeout', :lock_timeout, false),
       set_config('idle_in_transaction_session_timeout', '60000', false);
