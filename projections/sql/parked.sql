-- Parked and skipped events of builds: the table projection_parked.

-- row: passed_over
-- gives: sequence int, state text, parked_at time, attempts int, error text, type text

-- name: parked
-- takes: name text, build int, after int, most int
-- gives: passed_over
SELECT p.sequence, p.state, p.parked_at, p.attempts, p.error,
       coalesce((SELECT (SELECT k.type FROM event_kinds AS k WHERE k.kind = e.kind)
                 FROM events AS e WHERE e.sequence = p.sequence), '') AS type
FROM projection_parked AS p WHERE p.name = :name AND p.build = :build AND p.sequence > :after
ORDER BY p.sequence LIMIT :most;

-- name: parked_back
-- takes: name text, build int, before int, most int
-- gives: passed_over
SELECT p.sequence, p.state, p.parked_at, p.attempts, p.error,
       coalesce((SELECT (SELECT k.type FROM event_kinds AS k WHERE k.kind = e.kind)
                 FROM events AS e WHERE e.sequence = p.sequence), '') AS type
FROM projection_parked AS p WHERE p.name = :name AND p.build = :build AND p.sequence < :before
ORDER BY p.sequence DESC LIMIT :most;

-- name: count_parked
-- takes: name text, build int
-- gives: parked int, skipped int
SELECT count(*) FILTER (WHERE state <> 'skipped') AS parked,
       count(*) FILTER (WHERE state = 'skipped') AS skipped
FROM projection_parked WHERE name = :name AND build = :build;

-- name: park
-- takes: name text, build int, sequence int, state text, parked_at time, attempts int, error text,
--        instance text?
INSERT INTO projection_parked (name, build, sequence, state, parked_at, attempts, error, instance)
VALUES (:name, :build, :sequence, :state, :parked_at, :attempts, :error, :instance)
ON CONFLICT (name, build, sequence)
DO UPDATE SET state = excluded.state, attempts = excluded.attempts, error = excluded.error;

-- name: unpark
-- takes: name text, build int, sequence int
DELETE FROM projection_parked WHERE name = :name AND build = :build AND sequence = :sequence;

-- name: drop_parked
-- takes: name text, build int, sequence int
UPDATE projection_parked SET state = 'skipped'
WHERE name = :name AND build = :build AND sequence = :sequence AND state <> 'skipped';

-- name: want_again
-- takes: name text, build int, sequence int
UPDATE projection_parked SET state = 'retry'
WHERE name = :name AND build = :build AND sequence = :sequence AND state = 'parked';

-- name: wanted_again
-- takes: name text, build int
-- gives: sequence int, attempts int
SELECT sequence, attempts FROM projection_parked
WHERE name = :name AND build = :build AND state = 'retry' ORDER BY sequence LIMIT 1;

-- name: has_wanted_again
-- gives: wanted bool
SELECT EXISTS (SELECT 1 FROM projection_parked WHERE state = 'retry') AS wanted;

-- name: delete_parked_of_build
-- takes: name text, build int
DELETE FROM projection_parked WHERE name = :name AND build = :build;
