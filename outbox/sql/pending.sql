-- The messages that the relay publishes next. On PostgreSQL each query begins after
-- drained_through, to skip removed rows that a snapshot may still see.

-- name: next_messages
-- takes: partition int, after int, before int, limit int
-- gives: sequence int, stream int, attempts int
SELECT m.sequence, m.stream, m.attempts
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence > :after AND m.sequence < :before
ORDER BY m.sequence LIMIT :limit;
-- engine: postgres
SELECT m.sequence, m.stream, m.attempts
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence < :before
  AND m.sequence > max(:after, coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                         WHERE p.partition = :partition), 0))
ORDER BY m.sequence LIMIT :limit;

-- name: next_messages_beside_parked
-- The same, while any message is parked.
-- takes: partition int, after int, before int, limit int
-- gives: sequence int, stream int, attempts int, is_behind_parked bool
SELECT m.sequence, m.stream, m.attempts,
       EXISTS (SELECT 1 FROM outbox_parked AS k
               WHERE k.stream = m.stream AND k.sequence < m.sequence) AS is_behind_parked
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence > :after AND m.sequence < :before
ORDER BY m.sequence LIMIT :limit;
-- engine: postgres
SELECT m.sequence, m.stream, m.attempts,
       EXISTS (SELECT 1 FROM outbox_parked AS k
               WHERE k.stream = m.stream AND k.sequence < m.sequence) AS is_behind_parked
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence < :before
  AND m.sequence > max(:after, coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                         WHERE p.partition = :partition), 0))
ORDER BY m.sequence LIMIT :limit;

-- name: next_redeliveries
-- takes: partition int, after int, limit int
-- gives: redelivery int, generation int, sequence int, stream int, attempts int, kind text,
--        is_behind_parked bool, was_lost bool
SELECT r.redelivery, r.generation, r.sequence, r.stream, r.attempts, r.kind,
       EXISTS (SELECT 1 FROM outbox_parked AS k
               WHERE k.stream = r.stream AND k.sequence < r.sequence) AS is_behind_parked,
       r.was_lost
FROM outbox_redeliveries AS r
WHERE r.partition = :partition AND r.redelivery > :after
ORDER BY r.redelivery LIMIT :limit;

-- name: has_parked
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM outbox_parked) AS is_there;

-- name: is_parked_stream
-- Whether an earlier message of the stream is parked.
-- takes: stream int, before int
-- gives: is_parked bool
SELECT EXISTS (SELECT 1 FROM outbox_parked WHERE stream = :stream AND sequence < :before)
  AS is_parked;

-- name: is_published
-- takes: stream int, version int, first_published int
-- gives: is_published bool
SELECT EXISTS (SELECT 1 FROM events
               WHERE stream = :stream AND version = :version AND sequence >= :first_published)
  AS is_published;
