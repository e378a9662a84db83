-- Consumers' positions in the streams that they read, and their leases: the table inbox_readers. A
-- lease holder's writes follow `hold_reader` in the same transaction.

-- name: insert_reader
-- It has no reader yet, because its stream may be missing.
-- takes: consumer int, broker_stream text, filter text, now time
INSERT INTO inbox_readers (consumer, broker_stream, filter, unread_since)
VALUES (:consumer, :broker_stream, :filter, :now) ON CONFLICT DO NOTHING;

-- name: set_filter
-- Only for a reader that has read nothing.
-- takes: consumer int, broker_stream text, filter text
UPDATE inbox_readers SET filter = :filter
WHERE consumer = :consumer AND broker_stream = :broker_stream
  AND (stream_made_at = 0 OR position = began_after);

-- name: find_reader
-- takes: consumer int, broker_stream text
-- gives: filter text, stream_made_at int, position int, position_time int, began_after int,
--        known_through int, epoch int, owner text?, lease_until time, lease_ttl int, presence int?,
--        failing int, attempts int, next_attempt_at time, error text, unknown_since time?,
--        paused bool, created_at time
SELECT r.filter, r.stream_made_at, r.position, r.position_time, r.began_after, r.known_through,
       r.epoch, r.owner, r.lease_until, r.lease_ttl, r.presence, r.failing, r.attempts,
       r.next_attempt_at, r.error, r.unknown_since, c.paused, c.created_at
FROM inbox_readers AS r JOIN inbox_consumers AS c USING (consumer)
WHERE r.consumer = :consumer AND r.broker_stream = :broker_stream;

-- name: acquire_reader
-- If the lease hasn't changed since it was found free, and its holder has no open transaction.
-- takes: consumer int, broker_stream text, found_epoch int, found_until time, owner text, until time,
--        ttl int, presence int?
UPDATE inbox_readers
SET owner = :owner, epoch = epoch + 1, lease_until = :until, lease_ttl = :ttl, presence = :presence,
    unread_since = NULL
WHERE consumer = :consumer AND broker_stream = :broker_stream
  AND epoch = :found_epoch AND lease_until = :found_until;

-- engine: postgres
UPDATE inbox_readers AS r
SET owner = :owner, epoch = r.epoch + 1, lease_until = :until, lease_ttl = :ttl,
    presence = :presence, unread_since = NULL
FROM (SELECT f.consumer, f.broker_stream FROM inbox_readers AS f
      WHERE f.consumer = :consumer AND f.broker_stream = :broker_stream
        AND f.epoch = :found_epoch AND f.lease_until = :found_until
      FOR UPDATE SKIP LOCKED) AS free
WHERE r.consumer = free.consumer AND r.broker_stream = free.broker_stream;

-- name: hold_reader
-- Renews the lease, and locks others out until the transaction ends.
-- takes: consumer int, broker_stream text, epoch int, position int, until time
UPDATE inbox_readers SET lease_until = :until
WHERE consumer = :consumer AND broker_stream = :broker_stream
  AND epoch = :epoch AND position = :position;

-- name: release_reader
-- takes: consumer int, broker_stream text, epoch int, now time
UPDATE inbox_readers SET owner = NULL, lease_until = 0, unread_since = :now
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: place_reader
-- Clears the failure of the message after the old position, and renews the lease, because a handler
-- may have run for longer.
-- takes: consumer int, broker_stream text, epoch int, until time, stream_made_at int, position int,
--        position_time int, began_after int, known_through int
UPDATE inbox_readers
SET stream_made_at = :stream_made_at, position = :position, position_time = :position_time,
    began_after = :began_after, known_through = :known_through, failing = 0, attempts = 0,
    next_attempt_at = 0, error = '', unknown_since = NULL, failing_since = NULL,
    waits_at = 0, lease_until = :until
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: move_reader
-- It has read nothing after this position in its known stream. The lease is lost.
-- takes: consumer int, broker_stream text, position int
UPDATE inbox_readers
SET position = :position, position_time = 0, began_after = :position, known_through = 0,
    failing = 0, attempts = 0, next_attempt_at = 0, error = '',
    unknown_since = NULL, failing_since = NULL, waits_at = 0, owner = NULL, epoch = epoch + 1,
    lease_until = 0
WHERE consumer = :consumer AND broker_stream = :broker_stream;

-- name: note_reader
-- Records why the reader stays at its position, and since when. `waits_at`: the generation of the message that
-- waits for other readers, or 0.
-- takes: consumer int, broker_stream text, failing int, attempts int, next_attempt_at time, error text,
--        unknown_since time?, waits_at int, now time
UPDATE inbox_readers
SET failing_since = CASE WHEN :failing = 0 AND :error = '' THEN NULL
                         WHEN failing = :failing THEN coalesce(failing_since, :now) ELSE :now END,
    failing = :failing, attempts = :attempts, next_attempt_at = :next_attempt_at, error = :error,
    unknown_since = :unknown_since, waits_at = :waits_at
WHERE consumer = :consumer AND broker_stream = :broker_stream;

-- name: delete_reader
-- takes: consumer int, broker_stream text
DELETE FROM inbox_readers WHERE consumer = :consumer AND broker_stream = :broker_stream;

-- name: list_other_readers
-- With the highest sequence of the source that each has met.
-- takes: consumer int, broker_stream text, source text
-- gives: broker_stream text, filter text, position int, waits_at int, highest int
SELECT r.broker_stream, r.filter, r.position, r.waits_at, coalesce(s.sequence, 0) AS highest
FROM inbox_readers AS r LEFT JOIN inbox_sources AS s
  ON s.consumer = r.consumer AND s.broker_stream = r.broker_stream AND s.source = :source
WHERE r.consumer = :consumer AND r.broker_stream <> :broker_stream ORDER BY r.broker_stream;

-- name: list_readers
-- takes: consumer text
-- gives: broker_stream text, filter text, position int, owner text?, lease_until time, failing int,
--        attempts int, next_attempt_at time, error text, waits_at int, paused bool, lease_ttl int,
--        presence int?, failing_since time?, unread_since time?, paused_at time?
SELECT r.broker_stream, r.filter, r.position, r.owner, r.lease_until, r.failing, r.attempts,
       r.next_attempt_at, r.error, r.waits_at, c.paused, r.lease_ttl, r.presence, r.failing_since,
       r.unread_since, c.paused_at
FROM inbox_readers AS r JOIN inbox_consumers AS c USING (consumer)
WHERE c.name = :consumer ORDER BY r.broker_stream;

-- name: pause_consumer
-- takes: consumer text, paused bool, now time
UPDATE inbox_consumers
SET paused_at = CASE WHEN NOT :paused THEN NULL WHEN paused = 1 THEN paused_at ELSE :now END,
    paused = CASE WHEN :paused THEN 1 ELSE 0 END
WHERE name = :consumer;

-- name: find_source
-- takes: consumer int, broker_stream text, source text
-- gives: sequence int
SELECT sequence FROM inbox_sources
WHERE consumer = :consumer AND broker_stream = :broker_stream AND source = :source;

-- name: upsert_source
-- takes: consumer int, broker_stream text, source text, sequence int
INSERT INTO inbox_sources (consumer, broker_stream, source, sequence)
VALUES (:consumer, :broker_stream, :source, :sequence)
ON CONFLICT (consumer, broker_stream, source) DO UPDATE SET sequence = excluded.sequence
WHERE inbox_sources.sequence < excluded.sequence;

-- name: delete_sources
-- takes: consumer int, broker_stream text
DELETE FROM inbox_sources WHERE consumer = :consumer AND broker_stream = :broker_stream;
