-- Checks for verify and reconcile: whether the rows agree with the events and with each other.

-- name: has_outbox
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'outbox_settings')
       AS is_there;
-- engine: postgres
SELECT to_regclass('outbox_settings') IS NOT NULL AS is_there;

-- name: inspect_partitions
-- Each partition's counts of parked messages and redeliveries, and the actual numbers.
-- gives: partition int, epoch int, published_through int, parked int, redeliveries int,
--        actual_parked int, actual_redeliveries int
SELECT p.partition, p.epoch, p.published_through, p.parked, p.redeliveries,
       (SELECT count(*) FROM outbox_parked AS a WHERE a.partition = p.partition)
         AS actual_parked,
       (SELECT count(*) FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
         AS actual_redeliveries
FROM outbox_partitions AS p ORDER BY p.partition;

-- name: inspect_messages
-- is_published: the message is in the log of batches. A higher published_through proves nothing,
-- because messages that an adoption didn't find remain pending.
-- takes: after_partition int, after_sequence int, most int
-- gives: partition int, sequence int, stream int, event_stream int?, publishes int,
--        published_through int?, is_published bool, is_parked bool, is_discarded bool, attempts int
SELECT m.partition, m.sequence, m.stream, e.stream AS event_stream, k.publishes,
       p.published_through,
       m.sequence <= p.published_through
         AND coalesce((SELECT b.first_sequence FROM outbox_batches AS b
                       WHERE b.partition = m.partition AND b.last_sequence >= m.sequence
                         AND b.redelivery = 0
                       ORDER BY b.last_sequence LIMIT 1) <= m.sequence, 1 = 0) AS is_published,
       EXISTS (SELECT 1 FROM outbox_parked AS a WHERE a.sequence = m.sequence) AS is_parked,
       EXISTS (SELECT 1 FROM outbox_discarded AS d WHERE d.sequence = m.sequence) AS is_discarded,
       m.attempts
FROM outbox_messages AS m
LEFT JOIN events AS e ON e.sequence = m.sequence
LEFT JOIN event_kinds AS k ON k.kind = e.kind
LEFT JOIN outbox_partitions AS p ON p.partition = m.partition
WHERE (m.partition, m.sequence) > (:after_partition, :after_sequence)
ORDER BY m.partition, m.sequence LIMIT :most;

-- name: inspect_unseen
-- The first message of each partition that no relay would see: on PostgreSQL relays begin after
-- drained_through.
-- gives: partition int, sequence int
SELECT p.partition, 0 AS sequence FROM outbox_partitions AS p WHERE 1 = 0;
-- engine: postgres
SELECT p.partition, min(m.sequence) AS sequence
FROM outbox_partitions AS p
JOIN outbox_messages AS m ON m.partition = p.partition AND m.sequence <= p.drained_through
GROUP BY p.partition ORDER BY p.partition;

-- name: inspect_set_aside
-- Parked and discarded messages and redeliveries, with facts about their events.
-- gives: state text, sequence int, stream int, partition int, event_stream int?, publishes int,
--        has_partition bool, is_discarded_too bool
SELECT s.state, s.sequence, s.stream, s.partition, e.stream AS event_stream, k.publishes,
       p.partition IS NOT NULL AS has_partition,
       s.state = 'parked'
         AND EXISTS (SELECT 1 FROM outbox_discarded AS d WHERE d.sequence = s.sequence)
         AS is_discarded_too
FROM (SELECT 'parked' AS state, sequence, stream, partition FROM outbox_parked
      UNION ALL
      SELECT 'discarded', sequence, stream, partition FROM outbox_discarded
      UNION ALL
      SELECT 'to be sent again', sequence, stream, partition FROM outbox_redeliveries) AS s
LEFT JOIN events AS e ON e.sequence = s.sequence
LEFT JOIN event_kinds AS k ON k.kind = e.kind
LEFT JOIN outbox_partitions AS p ON p.partition = s.partition;

-- name: inspect_orphans
-- First parked messages that are marked as parked behind another, unless their stream has pending
-- redeliveries, after which the relay sends them.
-- gives: sequence int
SELECT p.sequence FROM outbox_parked AS p
WHERE p.reason = 'behind'
  AND NOT EXISTS (SELECT 1 FROM outbox_parked AS e
                  WHERE e.stream = p.stream AND e.sequence < p.sequence)
  AND NOT EXISTS (SELECT 1 FROM outbox_redeliveries AS r
                  WHERE r.stream = p.stream AND r.kind = 'retry')
ORDER BY p.sequence;

-- name: inspect_sums
-- How many events are publishable, and how many are in a state.
-- gives: publishable int, in_a_state int
SELECT (SELECT count(*) FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
        WHERE k.publishes
          AND e.sequence >= (SELECT min(first_sequence) FROM outbox_generations)) AS publishable,
       (SELECT count(*) FROM outbox_messages)
         + (SELECT count(*) FROM outbox_redeliveries WHERE kind = 'retry')
         + (SELECT count(*) FROM outbox_parked)
         + CAST((SELECT coalesce(sum(discarded), 0) FROM outbox_partitions) AS bigint)
         + CAST((SELECT coalesce(sum(published), 0) FROM outbox_partitions) AS bigint)
         AS in_a_state;

-- name: mend_counts
-- takes: partition int, parked int, redeliveries int
UPDATE outbox_partitions SET parked = :parked, redeliveries = :redeliveries
WHERE partition = :partition;
