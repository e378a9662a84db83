-- Messages that were taken over from the broker and can't be handled yet: the table inbox_held.

-- name: insert_held
-- Due only as the first of its stream that is held.
-- takes: consumer int, source text, stream text, version int, previous int, event_id blob,
--        broker_stream text, broker_sequence int, size int, held_at time, due_at time
INSERT INTO inbox_held (consumer, source, stream, version, previous, event_id, broker_stream,
                        broker_sequence, size, held_at, due_at)
VALUES (:consumer, :source, :stream, :version, :previous, :event_id, :broker_stream,
        :broker_sequence, :size, :held_at,
        CASE WHEN EXISTS (SELECT 1 FROM inbox_held
                          WHERE consumer = :consumer AND source = :source AND stream = :stream
                            AND version < :version)
             THEN NULL ELSE :due_at END)
ON CONFLICT (consumer, source, stream, version) DO UPDATE
SET event_id = excluded.event_id, broker_stream = excluded.broker_stream,
    broker_sequence = excluded.broker_sequence, size = excluded.size;

-- name: postpone_held
-- takes: consumer int, source text, stream text, version int, due_at time
UPDATE inbox_held
SET claims = 0, wish = NULL,
    due_at = CASE WHEN EXISTS (SELECT 1 FROM inbox_held AS e
                               WHERE e.consumer = :consumer AND e.source = :source
                                 AND e.stream = :stream AND e.version < :version)
             THEN NULL ELSE :due_at END
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: first_held
-- takes: consumer int, source text, stream text
-- gives: version int
SELECT version FROM inbox_held
WHERE consumer = :consumer AND source = :source AND stream = :stream ORDER BY version LIMIT 1;

-- name: is_held_otherwise
-- takes: consumer int, source text, stream text, version int, event_id blob
-- gives: found int
SELECT 1 AS found FROM inbox_held
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version
  AND event_id <> :event_id;

-- name: delete_held
-- takes: consumer int, source text, stream text, version int
DELETE FROM inbox_held
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version;

-- name: delete_lost
-- takes: consumer int, source text, stream text, version int, broker_sequence int
DELETE FROM inbox_held
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version = :version
  AND broker_sequence = :broker_sequence;

-- name: wake_first_held
-- One that failed keeps the time that it is due at, unless it lost that to an earlier one.
-- takes: consumer int, source text, stream text, due_at time
UPDATE inbox_held SET due_at = :due_at
WHERE held = (SELECT held FROM inbox_held
              WHERE consumer = :consumer AND source = :source AND stream = :stream
              ORDER BY version LIMIT 1)
  AND (due_at IS NULL
       OR NOT EXISTS (SELECT 1 FROM inbox_failures AS f
                      WHERE f.consumer = :consumer AND f.source = :source
                        AND f.stream = :stream AND f.version = inbox_held.version));

-- name: wake_forgotten_heads
-- The first of each stream is due at some time; earlier programs could leave one that wasn't.
-- takes: consumer int, now time
UPDATE inbox_held SET due_at = :now
WHERE consumer = :consumer AND due_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM inbox_held AS e
                  WHERE e.consumer = inbox_held.consumer AND e.source = inbox_held.source
                    AND e.stream = inbox_held.stream AND e.version < inbox_held.version);

-- name: next_due_held
-- takes: consumer int, broker_stream text
-- gives: due_at time
SELECT due_at FROM inbox_held
WHERE consumer = :consumer AND broker_stream = :broker_stream AND due_at IS NOT NULL
ORDER BY due_at LIMIT 1;

-- name: count_held_streams
-- takes: consumer int
-- gives: streams int
SELECT count(*) AS streams FROM inbox_held WHERE consumer = :consumer AND due_at IS NOT NULL;

-- name: due_held
-- takes: consumer int, broker_stream text, now time, most int
-- gives: held int, source text, stream text, version int, previous int, event_id blob,
--        broker_sequence int, size int, wish text?, is_behind_another bool,
--        is_behind_failure bool, position int?
SELECT h.held AS held, h.source AS source, h.stream AS stream, h.version AS version,
       h.previous AS previous, h.event_id AS event_id, h.broker_sequence AS broker_sequence,
       h.size AS size, h.wish AS wish,
       EXISTS (SELECT 1 FROM inbox_held AS e
               WHERE e.consumer = h.consumer AND e.source = h.source AND e.stream = h.stream
                 AND e.version < h.version) AS is_behind_another,
       EXISTS (SELECT 1 FROM inbox_failures AS f
               WHERE f.consumer = h.consumer AND f.source = h.source AND f.stream = h.stream
                 AND f.version < h.version) AS is_behind_failure,
       (SELECT p.version FROM inbox_positions AS p
        WHERE p.consumer = h.consumer AND p.source = h.source AND p.stream = h.stream) AS position
FROM inbox_held AS h
WHERE h.consumer = :consumer AND h.broker_stream = :broker_stream AND h.due_at <= :now
ORDER BY h.due_at LIMIT :most;

-- name: held_after
-- takes: consumer int, source text, stream text, version int, most int
-- gives: held int, source text, stream text, version int, previous int, event_id blob,
--        broker_sequence int, size int, wish text?, broker_stream text
SELECT held, source, stream, version, previous, event_id, broker_sequence, size, wish,
       broker_stream
FROM inbox_held
WHERE consumer = :consumer AND source = :source AND stream = :stream AND version > :version
ORDER BY version LIMIT :most;

-- name: claim_held
-- takes: held int, due_at time
-- gives: claims int
UPDATE inbox_held
SET claims = claims + 1, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE :due_at END
WHERE held = :held
RETURNING claims;

-- name: unclaim_held
-- takes: held int, due_at time
UPDATE inbox_held SET claims = 0, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE :due_at END
WHERE held = :held AND claims > 0;

-- name: schedule_held
-- takes: held int, due_at time?
UPDATE inbox_held SET due_at = :due_at WHERE held = :held;

-- name: bring_held_forward
-- takes: consumer int, broker_stream text, latest time
UPDATE inbox_held SET due_at = :latest
WHERE consumer = :consumer AND broker_stream = :broker_stream AND due_at > :latest;

-- name: note_wait
-- `waited` is what the process knows itself. One that sees the message wait for the first time adds
-- what has passed by the wall clock since another looked, `unseen` at most. Both in milliseconds.
-- takes: held int, now time, waited int, unseen int
-- gives: waited int
UPDATE inbox_held
SET waited = max(:waited,
                 waited + max(0, min((:now - coalesce(looked_at, held_at)) / 1000, :unseen))),
    looked_at = :now
WHERE held = :held
RETURNING waited;

-- name: list_held
-- Of all consumers if `consumer` is empty.
-- takes: consumer text, after int, most int
-- gives: held int, consumer text, source text, stream text, version int, broker_stream text,
--        broker_sequence int, held_at time, due_at time, wish text?, attempts int, error text,
--        behind int
SELECT h.held AS held, c.name AS consumer, h.source AS source, h.stream AS stream,
       h.version AS version, h.broker_stream AS broker_stream,
       h.broker_sequence AS broker_sequence, h.held_at AS held_at, h.due_at AS due_at,
       h.wish AS wish, coalesce(f.attempts, 0) AS attempts, coalesce(f.error, '') AS error,
       (SELECT count(*) FROM inbox_held AS b
        WHERE b.consumer = h.consumer AND b.source = h.source AND b.stream = h.stream
          AND b.version > h.version) AS behind
FROM inbox_held AS h
  JOIN inbox_consumers AS c USING (consumer)
  LEFT JOIN inbox_failures AS f
    ON f.consumer = h.consumer AND f.source = h.source AND f.stream = h.stream
      AND f.version = h.version
WHERE (:consumer = '' OR c.name = :consumer) AND h.held > :after AND h.due_at IS NOT NULL
ORDER BY h.held LIMIT :most;

-- name: release_held
-- takes: held int, wish text, due_at time
UPDATE inbox_held SET wish = :wish, due_at = :due_at WHERE held = :held AND due_at IS NOT NULL;
