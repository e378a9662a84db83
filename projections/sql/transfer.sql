-- The rows of reactions and processes that move with a store: checkpoints, parked events, timers.
-- Projectors are rebuilt. Pages come after the key of the last row.

-- name: owned_reaction
-- A reaction that a runner drives; on a server, by the server's clock.
-- takes: now time
-- gives: name text, owner text
SELECT name, owner FROM projections
WHERE kind = 'reaction' AND owner IS NOT NULL AND lease_until > :now ORDER BY name LIMIT 1;
-- engine: postgres
SELECT name, owner FROM projections
WHERE kind = 'reaction' AND owner IS NOT NULL AND :now IS NOT NULL
  AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
ORDER BY name LIMIT 1;

-- name: has_reactions
-- gives: has_any bool
SELECT EXISTS (SELECT 1 FROM projections WHERE kind = 'reaction') AS has_any;

-- name: save_reactions
-- gives: name text, build int, version int, position int, epoch int, attempts int, next_attempt_at int,
--        failing int, error text, halted bool, began_at int, changed_at int
SELECT name, build, version, position, epoch, attempts, next_attempt_at, failing, error, halted,
       began_at, changed_at
FROM projections WHERE kind = 'reaction' ORDER BY name, build;

-- name: load_reaction
-- takes: name text, build int, version int, position int, epoch int, attempts int, next_attempt_at int,
--        failing int, error text, halted bool, began_at int, changed_at int
INSERT INTO projections
  (name, build, version, kind, state, position, epoch, attempts, next_attempt_at, failing, error,
   halted, began_at, changed_at)
VALUES (:name, :build, :version, 'reaction', 'living', :position, :epoch, :attempts,
        :next_attempt_at, :failing, :error, CASE WHEN :halted THEN 1 ELSE 0 END, :began_at,
        :changed_at);

-- name: load_last_build
-- takes: name text, build int
INSERT INTO projection_builds (name, last) VALUES (:name, :build);

-- name: save_parked_events
-- takes: name text, build int, after int, most int
-- gives: sequence int, state text, parked_at time, attempts int, error text, instance text?
SELECT sequence, state, parked_at, attempts, error, instance
FROM projection_parked WHERE name = :name AND build = :build AND sequence > :after
ORDER BY sequence LIMIT :most;

-- name: load_process
-- takes: name text, registered_at time, fired int, failed int
INSERT INTO projection_processes (name, registered_at, fired, failed)
VALUES (:name, :registered_at, :fired, :failed);

-- name: save_timers
-- takes: process text, key text, kind text, most int
-- gives: process text, key text, kind text, version int, generation int, state text, due_at int,
--        wake_at int, attempts int, error text, recurrence text, set_at int, correlation_id text,
--        causation_id text, metadata text, payload blob
SELECT process, key, kind, version, generation, state, due_at, wake_at, attempts, error, recurrence,
       set_at, correlation_id, causation_id, metadata, payload
FROM projection_timers WHERE (process, key, kind) > (:process, :key, :kind)
ORDER BY process, key, kind LIMIT :most;

-- name: load_timer
-- takes: process text, key text, kind text, version int, generation int, state text, due_at int,
--        wake_at int, attempts int, error text, recurrence text, set_at int, correlation_id text,
--        causation_id text, metadata text, payload blob
INSERT INTO projection_timers
  (process, key, kind, version, generation, state, due_at, wake_at, attempts, error, recurrence,
   set_at, correlation_id, causation_id, metadata, payload)
VALUES (:process, :key, :kind, :version, :generation, :state, :due_at, :wake_at, :attempts, :error,
        :recurrence, :set_at, :correlation_id, :causation_id, :metadata, :payload);

-- name: save_timer_actions
-- takes: after int, most int
-- gives: action int, at time, who text, what text, detail text
SELECT action, at, who, what, detail FROM projection_timer_actions WHERE action > :after
ORDER BY action LIMIT :most;
