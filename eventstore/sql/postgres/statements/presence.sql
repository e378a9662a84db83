-- Signs of life: processes show that they live, followers sleep, and commits wait for standbys.

-- name: appear
-- doing: telling that this process lives
-- takes: store int4, number int4
-- gives: is_locked bool
SELECT pg_try_advisory_lock(:store, :number) AS is_locked;

-- name: disappear
-- doing: telling that a worker has ended
-- takes: store int4, number int4
SELECT pg_advisory_unlock(:store, :number);

-- name: is_present
-- doing: looking for a process
-- takes: store int, number int
SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid = :store::oid AND objid = :number::oid;

-- name: is_alive
SELECT 1;

-- name: sleep_by_bell
-- The server counts repeated locks, so take it only once.
-- takes: bell int
-- gives: is_asleep bool
SELECT pg_try_advisory_lock_shared(:bell) AS is_asleep;

-- name: ring
-- All sessions that notify share one lock, which nobody may hold while waiting for the disk.
-- doing: waking followers
-- takes: channel text
SELECT set_config('synchronous_commit', 'off', true), pg_notify(:channel, '');

-- name: awaited_standby
-- A role sees what its own sessions wait for, and the standbys' names.
-- doing: asking what commits wait for
-- takes: pid int
-- gives: wanted text, connected text
SELECT current_setting('synchronous_standby_names') AS wanted,
       (SELECT coalesce(string_agg(r.name, ', ' ORDER BY r.name), '')
        FROM (SELECT DISTINCT application_name AS name
              FROM pg_catalog.pg_stat_replication) AS r) AS connected
WHERE EXISTS (SELECT FROM pg_catalog.pg_stat_activity
              WHERE wait_event = 'SyncRep' AND datname = current_database()
                AND (:pid = 0 OR pid = :pid));
