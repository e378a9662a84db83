-- Partitions, their generations, and the facts of the outbox.

-- name: settings
-- gives: fence text, leasing bool
SELECT fence, leasing FROM outbox_settings WHERE one = 1;

-- name: partitioner_name
-- gives: detail text
SELECT detail FROM stela_participants WHERE name = 'outbox';

-- name: insert_partition
-- takes: partition int
INSERT INTO outbox_partitions (partition) VALUES (:partition)
ON CONFLICT (partition) DO UPDATE SET retired_at = NULL;

-- name: partitions
-- With the first sequence that waits in each, and whether anything is to be sent again.
-- gives: partition int, owner text?, lease_until time, stopped text?, first_waiting int?,
--        has_redeliveries bool
SELECT p.partition, p.owner, p.lease_until, p.stopped,
       (SELECT m.sequence FROM outbox_messages AS m
        WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1) AS first_waiting,
       EXISTS (SELECT 1 FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
         AS has_redeliveries
FROM outbox_partitions AS p WHERE p.retired_at IS NULL ORDER BY p.partition;

-- name: stopped_by
-- takes: partition int
-- gives: stopped text?
SELECT stopped FROM outbox_partitions WHERE partition = :partition;

-- name: first_waiting
-- The lowest sequence that waits anywhere, and the lowest generation that is to be sent again.
-- gives: sequence int?, generation int?
SELECT (SELECT min(first) FROM (
          SELECT (SELECT m.sequence FROM outbox_messages AS m
                  WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1) AS first
          FROM outbox_partitions AS p)) AS sequence,
       (SELECT min(generation) FROM outbox_redeliveries) AS generation;
