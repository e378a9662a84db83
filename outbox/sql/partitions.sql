-- Partitions, their generations, and the facts of the outbox.

-- row: generation
-- gives: generation int, first_sequence int, partition_count int

-- name: last_event
-- gives: sequence int
SELECT coalesce(max(sequence), 0) AS sequence FROM events;

-- name: settings
-- gives: fence text, leasing bool
SELECT fence, leasing FROM outbox_settings WHERE one = 1;

-- name: insert_settings
-- takes: fence text, leasing bool
INSERT INTO outbox_settings (one, fence, leasing) VALUES (1, :fence, :leasing);

-- name: partitioner_name
-- gives: detail text
SELECT detail FROM stela_participants WHERE name = 'outbox';

-- name: generations
-- gives: generation
SELECT generation, first_sequence, partition_count FROM outbox_generations ORDER BY generation;

-- name: current_generation
-- gives: generation
SELECT generation, first_sequence, partition_count FROM outbox_generations
ORDER BY generation DESC LIMIT 1;

-- name: insert_generation
-- takes: generation int, first_sequence int, partition_count int
INSERT INTO outbox_generations (generation, first_sequence, partition_count)
VALUES (:generation, :first_sequence, :partition_count);

-- name: first_published
-- Older events precede the outbox.
-- gives: sequence int
SELECT coalesce(min(first_sequence), 1) AS sequence FROM outbox_generations;

-- name: insert_partition
-- takes: partition int
INSERT INTO outbox_partitions (partition) VALUES (:partition)
ON CONFLICT (partition) DO UPDATE SET retired_at = NULL;

-- name: partitions
-- With the first sequence that waits in each, whether anything is to be sent again, whether an owner is
-- to look at the broker, and whether one that is backed off is to try at once.
-- gives: partition int, owner text?, lease_until time, stopped text?, lease_ttl int,
--        first_waiting int?, has_redeliveries bool, adopted bool, is_to_retry bool
SELECT p.partition, p.owner, p.lease_until, p.stopped,
       p.lease_ttl,
       (SELECT m.sequence FROM outbox_messages AS m
        WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1) AS first_waiting,
       EXISTS (SELECT 1 FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
         AS has_redeliveries,
       p.adopted, p.attempts > 0 AND p.next_attempt_at = 0 AS is_to_retry
FROM outbox_partitions AS p WHERE p.retired_at IS NULL ORDER BY p.partition;
-- engine: postgres
SELECT p.partition, p.owner, p.lease_until, p.stopped,
       p.lease_ttl,
       (SELECT m.sequence FROM outbox_messages AS m
        WHERE m.partition = p.partition AND m.sequence > p.drained_through
        ORDER BY m.sequence LIMIT 1) AS first_waiting,
       EXISTS (SELECT 1 FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
         AS has_redeliveries,
       p.adopted, p.attempts > 0 AND p.next_attempt_at = 0 AS is_to_retry
FROM outbox_partitions AS p WHERE p.retired_at IS NULL ORDER BY p.partition;

-- name: parked_partitions
-- Partitions with parked messages.
-- gives: partition int
SELECT partition FROM outbox_partitions WHERE parked > 0 ORDER BY partition;

-- name: partition_exists
-- takes: partition int
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM outbox_partitions WHERE partition = :partition) AS is_there;

-- name: next_partition_of_messages
-- The next partition, existing or not, that has pending messages or redeliveries.
-- takes: after int
-- gives: partition int?
SELECT min(partition) AS partition
FROM (SELECT * FROM (SELECT partition FROM outbox_messages
                     WHERE partition > :after ORDER BY partition LIMIT 1)
      UNION ALL
      SELECT * FROM (SELECT partition FROM outbox_redeliveries
                     WHERE partition > :after ORDER BY partition LIMIT 1));
-- engine: postgres
SELECT min(partition) AS partition
FROM (SELECT * FROM (SELECT partition FROM outbox_messages
                     WHERE partition > :after ORDER BY partition LIMIT 1) AS m
      UNION ALL
      SELECT * FROM (SELECT partition FROM outbox_redeliveries
                     WHERE partition > :after ORDER BY partition LIMIT 1) AS r) AS next;

-- name: count_redeliveries
-- takes: partition int
-- gives: count int
SELECT count(*) AS count FROM outbox_redeliveries WHERE partition = :partition;

-- name: redeliveries_of_partition
-- takes: partition int, most int
-- gives: redelivery int, sequence int, stream int, kind text, was_lost bool
SELECT redelivery, sequence, stream, kind, was_lost FROM outbox_redeliveries
WHERE partition = :partition ORDER BY redelivery LIMIT :most;

-- name: stopped_by
-- takes: partition int
-- gives: stopped text?
SELECT stopped FROM outbox_partitions WHERE partition = :partition;

-- name: note_discarded_poison
-- Marks the message that stopped it as discarded, so that nobody is told to discard it again.
-- takes: partition int, stands text, gone text
UPDATE outbox_partitions SET stopped_detail = replace(stopped_detail, :stands, :gone)
WHERE partition = :partition AND stopped = 'poison';

-- name: first_waiting
-- The lowest pending sequence of all partitions, and the lowest generation with redeliveries.
-- gives: sequence int?, generation int?
SELECT (SELECT min(first) FROM (
          SELECT (SELECT m.sequence FROM outbox_messages AS m
                  WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1) AS first
          FROM outbox_partitions AS p) AS firsts) AS sequence,
       (SELECT min(generation) FROM outbox_redeliveries) AS generation;
-- engine: postgres
SELECT (SELECT min(first) FROM (
          SELECT (SELECT m.sequence FROM outbox_messages AS m
                  WHERE m.partition = p.partition AND m.sequence > p.drained_through
                  ORDER BY m.sequence LIMIT 1) AS first
          FROM outbox_partitions AS p) AS firsts) AS sequence,
       (SELECT min(generation) FROM outbox_redeliveries) AS generation;
