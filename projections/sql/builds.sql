-- Builds of projectors, and positions of reactions: the table projections.

-- name: has_projections
-- Whether projections were ever used in this database.
-- gives: present bool
SELECT EXISTS (SELECT 1 FROM sqlite_schema
               WHERE type = 'table' AND name = 'projections') AS present;
-- engine: postgres
SELECT to_regclass('projections') IS NOT NULL AS present;

-- name: builds
-- gives: name text, build int, version int, kind text, state text, position int, epoch int, owner text,
--        lease_until time, attempts int, next_attempt_at time, failing int, error text, stopped bool,
--        definitions int, began_at time, changed_at time, filter text, upto int, target int,
--        lease_ttl int, presence int?, failing_since time?, stopped_at time?
SELECT name, build, version, kind, state, position, epoch, owner, lease_until, attempts,
       next_attempt_at, failing, error, halted AS stopped, definitions, began_at, changed_at, filter, upto,
       target, lease_ttl, presence, failing_since, stopped_at
FROM projections ORDER BY name, build;

-- name: next_build
-- takes: name text
-- gives: last int
INSERT INTO projection_builds (name, last) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET last = projection_builds.last + 1
RETURNING last;

-- name: insert_build
-- takes: name text, build int, version int, kind text, state text, position int, now time, filter text,
--        upto int, target int
INSERT INTO projections
  (name, build, version, kind, state, position, began_at, changed_at, filter, upto, target)
VALUES (:name, :build, :version, :kind, :state, :position, :now, :now, :filter, :upto, :target);

-- name: set_upto
-- takes: name text, build int, upto int
UPDATE projections SET upto = :upto WHERE name = :name AND build = :build;

-- name: set_state
-- takes: name text, build int, state text, now time
UPDATE projections SET state = :state, changed_at = :now WHERE name = :name AND build = :build;

-- name: acquire
-- If the lease hasn't changed since it was found free.
-- takes: name text, build int, found_epoch int, found_until time, owner text, until time, ttl int,
--        presence int?
-- gives: epoch int, position int
UPDATE projections
SET owner = :owner, epoch = epoch + 1, lease_until = :until, lease_ttl = :ttl,
    presence = :presence
WHERE name = :name AND build = :build AND state <> 'retired'
  AND epoch = :found_epoch AND lease_until = :found_until
RETURNING epoch, position;

-- name: seize
-- Takes it from any owner, which notices the new epoch.
-- takes: name text, build int, owner text, until time, ttl int, presence int?
-- gives: epoch int, position int
UPDATE projections
SET owner = :owner, epoch = epoch + 1, lease_until = :until, lease_ttl = :ttl,
    presence = :presence
WHERE name = :name AND build = :build
RETURNING epoch, position;

-- name: renew
-- takes: name text, build int, epoch int, until time
UPDATE projections SET lease_until = :until
WHERE name = :name AND build = :build AND epoch = :epoch;

-- name: dispossess
-- Takes it from any owner, which notices the new epoch, and leaves it free.
-- takes: name text, build int
UPDATE projections SET owner = NULL, epoch = epoch + 1, lease_until = 0
WHERE name = :name AND build = :build;

-- name: release
-- takes: name text, build int, epoch int
UPDATE projections SET owner = NULL, lease_until = 0
WHERE name = :name AND build = :build AND epoch = :epoch;

-- name: advance
-- takes: name text, build int, from_position int, epoch int, to_position int, until time, resumes bool
UPDATE projections
SET position = :to_position, lease_until = :until, attempts = 0, next_attempt_at = 0, failing = 0,
    error = '', halted = 0, failing_since = NULL, stopped_at = NULL
WHERE name = :name AND build = :build AND position = :from_position AND epoch = :epoch
  AND (halted = 0 OR :resumes) AND state <> 'retired';

-- name: advance_inline
-- takes: name text, build int, from_position int, to_position int
UPDATE projections SET position = :to_position
WHERE name = :name AND build = :build AND position = :from_position AND state = 'living';

-- name: note_failure
-- takes: name text, build int, position int, epoch int, attempts int, next_attempt_at time, failing int,
--        error text, stopped bool, resumes bool, now time
UPDATE projections
SET failing_since = CASE WHEN failing = :failing AND failing_since IS NOT NULL
                         THEN failing_since ELSE :now END,
    stopped_at = CASE WHEN NOT :stopped THEN NULL WHEN halted = 1 THEN stopped_at ELSE :now END,
    attempts = :attempts, next_attempt_at = :next_attempt_at, failing = :failing, error = :error,
    halted = CASE WHEN :stopped THEN 1 ELSE 0 END
WHERE name = :name AND build = :build AND position = :position AND epoch = :epoch
  AND (halted = 0 OR :resumes);

-- name: skip_failing
-- takes: name text, build int, failing int
UPDATE projections
SET position = failing, failing = 0, attempts = 0, next_attempt_at = 0, error = '', halted = 0,
    failing_since = NULL, stopped_at = NULL
WHERE name = :name AND build = :build AND failing = :failing;

-- name: resume_stopped
-- takes: name text, build int
UPDATE projections SET halted = 0, attempts = 0, next_attempt_at = 0, stopped_at = NULL
WHERE name = :name AND build = :build AND (halted = 1 OR failing > 0);

-- name: set_definitions
-- takes: name text, build int, definitions int
UPDATE projections SET definitions = :definitions WHERE name = :name AND build = :build;

-- name: set_statements
-- The column is a replay's end; for other builds, the checksum of their tables' statements.
-- takes: name text, build int, statements int
UPDATE projections SET upto = :statements
WHERE name = :name AND build = :build AND state <> 'scratch';

-- name: delete_build
-- takes: name text, build int
DELETE FROM projections WHERE name = :name AND build = :build;

-- name: forget_participant
-- takes: name text
DELETE FROM stela_participants WHERE name = :name;
