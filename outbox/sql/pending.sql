-- What the relay publishes next, and how workers without leases claim it. On PostgreSQL each begins
-- after drained_through: removed rows that a snapshot may still see would be walked through.

-- row: pending
-- gives: sequence int, stream int, attempts int, next_attempt_at time

-- row: size
-- gives: size int

-- name: next_messages
-- takes: partition int, after int, before int, limit int
-- gives: pending
SELECT m.sequence, m.stream, m.attempts, m.next_attempt_at
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence > :after AND m.sequence < :before
ORDER BY m.sequence LIMIT :limit;
-- engine: postgres
SELECT m.sequence, m.stream, m.attempts, m.next_attempt_at
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence < :before
  AND m.sequence > max(:after, coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                         WHERE p.partition = :partition), 0))
ORDER BY m.sequence LIMIT :limit;

-- name: next_messages_beside_parked
-- The same while anything is parked.
-- takes: partition int, after int, before int, limit int
-- gives: sequence int, stream int, attempts int, next_attempt_at time, is_behind_parked bool
SELECT m.sequence, m.stream, m.attempts, m.next_attempt_at,
       EXISTS (SELECT 1 FROM outbox_parked AS k
               WHERE k.stream = m.stream AND k.sequence < m.sequence) AS is_behind_parked
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence > :after AND m.sequence < :before
ORDER BY m.sequence LIMIT :limit;
-- engine: postgres
SELECT m.sequence, m.stream, m.attempts, m.next_attempt_at,
       EXISTS (SELECT 1 FROM outbox_parked AS k
               WHERE k.stream = m.stream AND k.sequence < m.sequence) AS is_behind_parked
FROM outbox_messages AS m
WHERE m.partition = :partition AND m.sequence < :before
  AND m.sequence > max(:after, coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                         WHERE p.partition = :partition), 0))
ORDER BY m.sequence LIMIT :limit;

-- name: next_redeliveries
-- takes: partition int, after int, limit int
-- gives: redelivery int, sequence int, stream int, attempts int, kind text, is_behind_parked bool,
--        was_lost bool
SELECT r.redelivery, r.sequence, r.stream, r.attempts, r.kind,
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
-- Whether something of the stream that comes before the sequence is parked.
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

-- name: can_claim
-- Not claimed, or no longer, or until absurdly late by a clock that was wrong.
-- takes: partition int, now time, absurd time, claim text
-- gives: can_claim bool
SELECT EXISTS (SELECT 1 FROM outbox_messages
               WHERE partition = :partition
                 AND (claimed_until <= :now OR claimed_until > :absurd) AND claim IS NOT :claim)
    OR EXISTS (SELECT 1 FROM outbox_redeliveries
               WHERE partition = :partition
                 AND (claimed_until <= :now OR claimed_until > :absurd) AND claim IS NOT :claim)
  AS can_claim;
-- engine: postgres
SELECT EXISTS (SELECT 1 FROM outbox_messages
               WHERE partition = :partition
                 AND sequence > coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                          WHERE p.partition = :partition), 0)
                 AND (claimed_until <= :now OR claimed_until > :absurd) AND claim IS NOT :claim)
    OR EXISTS (SELECT 1 FROM outbox_redeliveries
               WHERE partition = :partition
                 AND (claimed_until <= :now OR claimed_until > :absurd) AND claim IS NOT :claim)
  AS can_claim;

-- name: size_claimable_messages
-- takes: partition int, now time, absurd time, claim text, limit int
-- gives: size
SELECT coalesce(length(e.payload), 0) AS size
FROM outbox_messages AS m LEFT JOIN events AS e ON e.sequence = m.sequence
WHERE m.partition = :partition AND (m.claimed_until <= :now OR m.claimed_until > :absurd)
  AND m.claim IS NOT :claim
ORDER BY m.sequence LIMIT :limit;
-- engine: postgres
SELECT coalesce(length(e.payload), 0) AS size
FROM outbox_messages AS m LEFT JOIN events AS e ON e.sequence = m.sequence
WHERE m.partition = :partition
  AND m.sequence > coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                             WHERE p.partition = :partition), 0)
  AND (m.claimed_until <= :now OR m.claimed_until > :absurd)
  AND m.claim IS NOT :claim
ORDER BY m.sequence LIMIT :limit;

-- name: size_claimable_redeliveries
-- takes: partition int, now time, absurd time, claim text, limit int
-- gives: size
SELECT coalesce(length(e.payload), 0) AS size
FROM outbox_redeliveries AS r LEFT JOIN events AS e ON e.sequence = r.sequence
WHERE r.partition = :partition AND (r.claimed_until <= :now OR r.claimed_until > :absurd)
  AND r.claim IS NOT :claim
ORDER BY r.redelivery LIMIT :limit;

-- name: claim_messages
-- The rows come in any order.
-- takes: partition int, now time, absurd time, claim text, until time, limit int
-- gives: pending
UPDATE outbox_messages SET claim = :claim, claimed_until = :until
WHERE partition = :partition AND sequence IN
  (SELECT m.sequence FROM outbox_messages AS m
   WHERE m.partition = :partition AND (m.claimed_until <= :now OR m.claimed_until > :absurd)
     AND m.claim IS NOT :claim
   ORDER BY m.sequence LIMIT :limit)
RETURNING sequence, stream, attempts, next_attempt_at;
-- engine: postgres
UPDATE outbox_messages SET claim = :claim, claimed_until = :until
WHERE partition = :partition AND sequence IN
  (SELECT m.sequence FROM outbox_messages AS m
   WHERE m.partition = :partition
     AND m.sequence > coalesce((SELECT p.drained_through FROM outbox_partitions AS p
                                WHERE p.partition = :partition), 0)
     AND (m.claimed_until <= :now OR m.claimed_until > :absurd)
     AND m.claim IS NOT :claim
   ORDER BY m.sequence LIMIT :limit)
RETURNING sequence, stream, attempts, next_attempt_at;

-- name: claim_redeliveries
-- The rows come in any order.
-- takes: partition int, now time, absurd time, claim text, until time, limit int
-- gives: sequence int, stream int, attempts int, redelivery int, kind text, was_lost bool
UPDATE outbox_redeliveries SET claim = :claim, claimed_until = :until
WHERE redelivery IN
  (SELECT r.redelivery FROM outbox_redeliveries AS r
   WHERE r.partition = :partition AND (r.claimed_until <= :now OR r.claimed_until > :absurd)
     AND r.claim IS NOT :claim
   ORDER BY r.redelivery LIMIT :limit)
RETURNING sequence, stream, attempts, redelivery, kind, was_lost;
