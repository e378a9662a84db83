-- How far consumers are in the streams that they read, and who reads: the table inbox_readers.

-- name: insert_reader
-- takes: consumer int, broker_stream text, filter text
INSERT INTO inbox_readers (consumer, broker_stream, filter)
VALUES (:consumer, :broker_stream, :filter) ON CONFLICT DO NOTHING;

-- name: set_filter
-- Of a reader that has read nothing.
-- takes: consumer int, broker_stream text, filter text
UPDATE inbox_readers SET filter = :filter
WHERE consumer = :consumer AND broker_stream = :broker_stream
  AND (stream_made_at = 0 OR position = began_after);

-- name: find_reader
-- takes: consumer int, broker_stream text
-- gives: filter text, stream_made_at int, position int, position_time int, began_after int,
--        known_through int, held_from int?, epoch int, owner text?, lease_until time, lease_ttl int, presence int?, failing int, attempts int,
--        next_attempt_at time, error text, unknown_since time?, paused bool, consumer_made_at time
SELECT r.filter AS filter, r.stream_made_at AS stream_made_at, r.position AS position,
       r.position_time AS position_time, r.began_after AS began_after,
       r.known_through AS known_through, r.held_from AS held_from, r.epoch AS epoch,
       r.owner AS owner, r.lease_until AS lease_until, r.lease_ttl AS lease_ttl,
       r.presence AS presence, r.failing AS failing, r.attempts AS attempts,
       r.next_attempt_at AS next_attempt_at, r.error AS error, r.unknown_since AS unknown_since,
       c.paused AS paused, c.created_at AS consumer_made_at
FROM inbox_readers AS r JOIN inbox_consumers AS c USING (consumer)
WHERE r.consumer = :consumer AND r.broker_stream = :broker_stream;

-- name: acquire_reader
-- If the lease is still the one that was found to be free, and no transaction of its holder is open.
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

-- name: renew_reader
-- takes: consumer int, broker_stream text, epoch int, until time
UPDATE inbox_readers SET lease_until = :until
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: release_reader
-- takes: consumer int, broker_stream text, epoch int, now time
UPDATE inbox_readers SET owner = NULL, lease_until = 0, unread_since = :now
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: begin_reader
-- takes: consumer int, broker_stream text, epoch int, stream_made_at int, position int,
--        known_through int
UPDATE inbox_readers
SET stream_made_at = :stream_made_at, position = :position, position_time = 0, began_after = :position, known_through = :known_through,
    held_from = NULL, failing = 0, attempts = 0, next_attempt_at = 0, error = '',
    unknown_since = NULL, failing_since = NULL, waits_at = 0
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: advance_reader
-- takes: consumer int, broker_stream text, epoch int, from_position int, to_position int,
--        position_time int, stream_made_at int, until time
UPDATE inbox_readers
SET position = :to_position, position_time = :position_time, stream_made_at = :stream_made_at, lease_until = :until, failing = 0, attempts = 0, next_attempt_at = 0,
    error = '', unknown_since = NULL, failing_since = NULL, waits_at = 0
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch
  AND position = :from_position;

-- name: note_reader_failure
-- takes: consumer int, broker_stream text, epoch int, failing int, attempts int, next_attempt_at time,
--        error text, unknown_since time?, now time
UPDATE inbox_readers
SET failing_since = CASE WHEN failing = :failing AND failing_since IS NOT NULL
                         THEN failing_since ELSE :now END,
    failing = :failing, attempts = :attempts, next_attempt_at = :next_attempt_at, error = :error,
    unknown_since = :unknown_since
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: note_reader_waits
-- `waits_at` is the generation of the message that waits for other readers; 0 if none does.
-- takes: consumer int, broker_stream text, epoch int, waits_at int, error text
UPDATE inbox_readers SET waits_at = :waits_at, error = :error
WHERE consumer = :consumer AND broker_stream = :broker_stream AND epoch = :epoch;

-- name: move_reader
-- Its next holder begins there. Whoever holds it now loses it.
-- takes: consumer int, broker_stream text, position int
UPDATE inbox_readers
SET position = :position, position_time = 0, stream_made_at = 0, held_from = NULL, known_through = 0, owner = NULL,
    epoch = epoch + 1, lease_until = 0, failing = 0, attempts = 0, next_attempt_at = 0, error = '',
    unknown_since = NULL, failing_since = NULL, waits_at = 0
WHERE consumer = :consumer AND broker_stream = :broker_stream;

-- name: delete_reader
-- takes: consumer text, broker_stream text
DELETE FROM inbox_readers
WHERE consumer = (SELECT c.consumer FROM inbox_consumers AS c WHERE c.name = :consumer)
  AND broker_stream = :broker_stream;

-- name: list_other_readers
-- With the highest sequence of the source that each has met.
-- takes: consumer int, broker_stream text, source text
-- gives: broker_stream text, filter text, position int, waits_at int, highest int
SELECT r.broker_stream AS broker_stream, r.filter AS filter, r.position AS position,
       r.waits_at AS waits_at, coalesce(s.sequence, 0) AS highest
FROM inbox_readers AS r LEFT JOIN inbox_sources AS s
  ON s.consumer = r.consumer AND s.broker_stream = r.broker_stream AND s.source = :source
WHERE r.consumer = :consumer AND r.broker_stream <> :broker_stream ORDER BY r.broker_stream;

-- name: list_readers
-- Of all consumers if `consumer` is empty.
-- takes: consumer text
-- gives: consumer text, broker_stream text, filter text, position int, owner text?, lease_until time,
--        failing int, attempts int, next_attempt_at time, error text, waits_at int, paused bool,
--        lease_ttl int, presence int?, failing_since time?, unread_since time?, paused_at time?
SELECT c.name AS consumer, r.broker_stream AS broker_stream, r.filter AS filter,
       r.position AS position, r.owner AS owner, r.lease_until AS lease_until, r.failing AS failing,
       r.attempts AS attempts, r.next_attempt_at AS next_attempt_at, r.error AS error,
       r.waits_at AS waits_at, c.paused AS paused, r.lease_ttl AS lease_ttl, r.presence AS presence,
       r.failing_since AS failing_since, r.unread_since AS unread_since, c.paused_at AS paused_at
FROM inbox_readers AS r JOIN inbox_consumers AS c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) ORDER BY c.name, r.broker_stream;

-- name: pause_consumer
-- takes: consumer text, paused bool, now time
UPDATE inbox_consumers
SET paused_at = CASE WHEN NOT :paused THEN NULL WHEN paused = 1 THEN paused_at ELSE :now END,
    paused = CASE WHEN :paused THEN 1 ELSE 0 END
WHERE name = :consumer;

-- name: list_sources
-- takes: consumer int, broker_stream text
-- gives: source text, sequence int
SELECT source, sequence FROM inbox_sources
WHERE consumer = :consumer AND broker_stream = :broker_stream ORDER BY source;

-- name: upsert_source
-- takes: consumer int, broker_stream text, source text, sequence int
INSERT INTO inbox_sources (consumer, broker_stream, source, sequence)
VALUES (:consumer, :broker_stream, :source, :sequence)
ON CONFLICT (consumer, broker_stream, source) DO UPDATE SET sequence = excluded.sequence;

-- name: delete_sources
-- takes: consumer int, broker_stream text
DELETE FROM inbox_sources WHERE consumer = :consumer AND broker_stream = :broker_stream;
