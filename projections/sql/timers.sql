-- Timers of processes: the tables projection_timers, projection_processes and projection_timer_holds.

-- row: timer
-- gives: process text, key text, kind text, version int, generation int, state text, due_at time,
--        wake_at time, attempts int, error text, recurrence text, set_at time, correlation_id text,
--        causation_id text, metadata text, payload blob

-- name: set_timer
-- takes: process text, key text, kind text, version int, generation int, due_at time, recurrence text,
--        set_at time, correlation_id text, causation_id text, metadata text, payload blob
INSERT INTO projection_timers
  (process, key, kind, version, generation, due_at, wake_at, recurrence, set_at, correlation_id,
   causation_id, metadata, payload)
VALUES (:process, :key, :kind, :version, :generation, :due_at, :due_at, :recurrence, :set_at,
        :correlation_id, :causation_id, :metadata, :payload)
ON CONFLICT (process, key, kind) DO UPDATE
SET version = excluded.version, generation = excluded.generation, state = 'pending',
    due_at = excluded.due_at, wake_at = excluded.wake_at, attempts = 0, error = '',
    recurrence = excluded.recurrence, set_at = excluded.set_at,
    correlation_id = excluded.correlation_id, causation_id = excluded.causation_id,
    metadata = excluded.metadata, payload = excluded.payload;

-- name: clear_timer
-- takes: process text, key text, kind text
DELETE FROM projection_timers WHERE process = :process AND key = :key AND kind = :kind;

-- name: due_timers
-- Timers that aren't held: the instance has no earlier timer being retried and no parked event.
-- Each is checked separately in the order of the index. For NOT EXISTS, PostgreSQL would join all
-- due timers before taking the first ones.
-- takes: process text, build int, now time, most int
-- gives: timer
SELECT process, key, kind, version, generation, state, due_at, wake_at, attempts, error, recurrence,
       set_at, correlation_id, causation_id, metadata, payload
FROM projection_timers AS t
WHERE process = :process AND state = 'pending' AND wake_at <= :now
  AND (SELECT 1 FROM projection_timers AS f
       WHERE f.process = t.process AND f.key = t.key AND f.state = 'pending'
         AND f.wake_at > f.due_at AND (f.due_at, f.kind) < (t.due_at, t.kind) LIMIT 1) IS NULL
  AND (SELECT 1 FROM projection_parked AS p
       WHERE p.name = :process AND p.build = :build AND p.state <> 'skipped'
         AND p.instance = t.key LIMIT 1) IS NULL
  AND NOT EXISTS (SELECT 1 FROM projection_parked AS p
                  WHERE p.name = :process AND p.build = :build AND p.state <> 'skipped'
                    AND p.instance IS NULL)
ORDER BY wake_at, key, kind LIMIT :most;

-- name: next_wake
-- takes: process text, build int
-- gives: wake_at time
SELECT wake_at FROM projection_timers AS t
WHERE process = :process AND state = 'pending'
  AND (SELECT 1 FROM projection_timers AS f
       WHERE f.process = t.process AND f.key = t.key AND f.state = 'pending'
         AND f.wake_at > f.due_at AND (f.due_at, f.kind) < (t.due_at, t.kind) LIMIT 1) IS NULL
  AND (SELECT 1 FROM projection_parked AS p
       WHERE p.name = :process AND p.build = :build AND p.state <> 'skipped'
         AND p.instance = t.key LIMIT 1) IS NULL
  AND NOT EXISTS (SELECT 1 FROM projection_parked AS p
                  WHERE p.name = :process AND p.build = :build AND p.state <> 'skipped'
                    AND p.instance IS NULL)
ORDER BY wake_at, key, kind LIMIT 1;

-- name: take_timer
-- takes: process text, key text, kind text, generation int
DELETE FROM projection_timers
WHERE process = :process AND key = :key AND kind = :kind AND generation = :generation;

-- name: set_again
-- takes: process text, key text, kind text, generation int, next_generation int, due_at time
UPDATE projection_timers
SET generation = :next_generation, due_at = :due_at, wake_at = :due_at, attempts = 0, error = ''
WHERE process = :process AND key = :key AND kind = :kind AND generation = :generation;

-- name: note_timer_failure
-- takes: process text, key text, kind text, generation int, state text, attempts int, wake_at time,
--        error text
UPDATE projection_timers
SET state = :state, attempts = :attempts, wake_at = :wake_at, error = :error
WHERE process = :process AND key = :key AND kind = :kind AND generation = :generation;

-- name: unknown_kinds
-- takes: process text
-- gives: kind text, version int
SELECT DISTINCT kind, version FROM projection_timers
WHERE process = :process AND state = 'unknown' ORDER BY kind, version;

-- name: adopt_unknown
-- takes: process text, kind text, version int
UPDATE projection_timers SET state = 'pending', wake_at = due_at, attempts = 0, error = ''
WHERE process = :process AND state = 'unknown' AND kind = :kind AND version = :version;

-- name: delete_timers_of_process
-- takes: process text
DELETE FROM projection_timers WHERE process = :process;

-- name: count_fired
-- takes: name text, fired int, failed int
UPDATE projection_processes SET fired = fired + :fired, failed = failed + :failed
WHERE name = :name;

-- name: register_process
-- takes: name text, now time
INSERT INTO projection_processes (name, registered_at) VALUES (:name, :now) ON CONFLICT DO NOTHING;

-- name: forget_process
-- takes: name text
DELETE FROM projection_processes WHERE name = :name;

-- name: processes
-- gives: name text, registered_at time, fired int, failed int
SELECT name, registered_at, fired, failed FROM projection_processes ORDER BY name;

-- name: has_timers
-- gives: has_any bool
SELECT EXISTS (SELECT 1 FROM projection_timers) AS has_any;

-- name: holds
-- `restored`: the file is a copy of a database, made at that time.
-- gives: reason text, since time, ahead int, detail text
SELECT reason, since, ahead, detail FROM projection_timer_holds
UNION ALL
SELECT 'restored' AS reason, CAST(value AS BIGINT) AS since, 0 AS ahead, '' AS detail
FROM stela_facts WHERE name = 'copied_at'
ORDER BY reason;
-- engine: postgres
-- `restored`: the tables aren't in the recorded place.
SELECT reason, since, ahead, detail FROM projection_timer_holds
UNION ALL
SELECT 'restored' AS reason,
       coalesce((SELECT max(p.noted_at) FROM projection_timer_place AS p), 0) AS since, 0 AS ahead,
       'this database is a copy of the one in which its timers were set, or was moved here' AS detail
FROM pg_control_system() AS c, pg_database AS d, pg_class AS t
WHERE d.datname = current_database() AND t.oid = 'projection_timer_place'::regclass
  AND NOT EXISTS (SELECT 1 FROM projection_timer_place AS p
                  WHERE p.place = concat_ws('/', c.system_identifier, d.oid, t.relnamespace))
ORDER BY reason;

-- name: set_hold
-- takes: reason text, since time, ahead int, detail text
INSERT INTO projection_timer_holds (reason, since, ahead, detail)
VALUES (:reason, :since, :ahead, :detail)
ON CONFLICT (reason) DO UPDATE SET since = excluded.since, ahead = excluded.ahead,
                                   detail = excluded.detail;

-- name: drop_hold
-- takes: reason text
DELETE FROM projection_timer_holds WHERE reason = :reason;

-- name: accept_copy
DELETE FROM stela_facts WHERE name = 'copied_at';
-- engine: postgres
INSERT INTO projection_timer_place (place, noted_at)
SELECT concat_ws('/', c.system_identifier, d.oid, t.relnamespace),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM pg_control_system() AS c, pg_database AS d, pg_class AS t
WHERE d.datname = current_database() AND t.oid = 'projection_timer_place'::regclass
ON CONFLICT (one) DO UPDATE SET place = excluded.place, noted_at = excluded.noted_at;

-- name: head
-- gives: last int
SELECT coalesce(max(sequence), 0) AS last FROM events;
