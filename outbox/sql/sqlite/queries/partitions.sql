-- With the first sequence that waits in each, or NULL, and whether anything is to be sent again.
SELECT p.partition, p.owner, p.epoch, p.lease_until, p.stopped,
       (SELECT m.sequence FROM outbox_messages AS m
        WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1),
       EXISTS (SELECT 1 FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
FROM outbox_partitions AS p WHERE p.retired_at IS NULL ORDER BY p.partition
