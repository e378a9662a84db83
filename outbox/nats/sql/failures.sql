-- Messages that failed and are going to be tried again: the table inbox_failures.

-- name: has_failures
-- Whether the consumer has any, or any message that is held.
-- takes: consumer int
-- gives: found bool
SELECT EXISTS (SELECT 1 FROM inbox_failures WHERE consumer = :consumer)
    OR EXISTS (SELECT 1 FROM inbox_held WHERE consumer = :consumer) AS found;

-- name: has_trouble
-- Whether the stream has any, or any message that is held.
-- takes: consumer int, source text, stream text
-- gives: found bool
SELECT EXISTS (SELECT 1 FROM inbox_failures
               WHERE consumer = :consumer AND source = :source AND stream = :stream)
    OR EXISTS (SELECT 1 FROM inbox_held
               WHERE consumer = :consumer AND source = :source AND stream = :stream) AS found;

-- name: has_failure_before
-- takes: consumer int, source text, stream text, version int
-- gives: found int
SELECT 1 AS found FROM inbox_failures
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version < :version;

-- name: find_failure
-- takes: consumer int, source text, stream text, version int
-- gives: attempts int, error text
SELECT attempts, error FROM inbox_failures
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: upsert_failure
-- takes: consumer int, source text, stream text, version int, error text
-- gives: attempts int
INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error)
VALUES (:consumer, :source, :stream, :version, 1, :error)
ON CONFLICT (consumer, source, stream, version)
DO UPDATE SET attempts = inbox_failures.attempts + 1, error = excluded.error
RETURNING attempts;

-- name: note_unknown
-- Since when it is known that somebody doesn't know the event's version. It isn't an attempt.
-- takes: consumer int, source text, stream text, version int, error text, now time
-- gives: unknown_since time
INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error, unknown_since)
VALUES (:consumer, :source, :stream, :version, 0, :error, :now)
ON CONFLICT (consumer, source, stream, version)
DO UPDATE SET error = excluded.error,
              unknown_since = coalesce(inbox_failures.unknown_since, excluded.unknown_since)
RETURNING unknown_since;

-- name: explain_failure
-- takes: consumer int, source text, stream text, version int, error text
UPDATE inbox_failures SET error = :error
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: take_back_failure
-- takes: consumer int, source text, stream text, version int
UPDATE inbox_failures SET attempts = attempts - 1
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: delete_untried
-- takes: consumer int, source text, stream text, version int
DELETE FROM inbox_failures
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version
  AND attempts <= 0 AND unknown_since IS NULL;

-- name: delete_failure
-- takes: consumer int, source text, stream text, version int
DELETE FROM inbox_failures
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: delete_failures_before
-- takes: consumer int, source text, stream text, version int
-- gives: version int, error text
DELETE FROM inbox_failures
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version < :version
RETURNING version, error;
