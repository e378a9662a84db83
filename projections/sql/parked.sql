-- Events that a build passed over: the table projection_parked.

-- row: passed_over
-- gives: sequence int, state text, parked_at time, attempts int, error text

-- name: parked
-- takes: name text, build int, after int, most int
-- gives: passed_over
SELECT sequence, state, parked_at, attempts, error
FROM projection_parked WHERE name = :name AND build = :build AND sequence > :after
ORDER BY sequence LIMIT :most;

-- name: parked_back
-- takes: name text, build int, before int, most int
-- gives: passed_over
SELECT sequence, state, parked_at, attempts, error
FROM projection_parked WHERE name = :name AND build = :build AND sequence < :before
ORDER BY sequence DESC LIMIT :most;

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
