-- The position of the last message that the partition ever got: when none waits, as many were
-- removed as ever came.
SELECT coalesce((SELECT m.position FROM outbox_messages AS m
                 WHERE m.partition = ?1 ORDER BY m.sequence DESC LIMIT 1),
                (SELECT p.removed FROM outbox_partitions AS p WHERE p.partition = ?1), 0)
