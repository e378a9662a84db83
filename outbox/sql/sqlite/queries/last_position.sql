-- The position of the last message that the partition ever got. Its row knows that of what was
-- removed.
SELECT max(coalesce((SELECT m.position FROM outbox_messages AS m
                     WHERE m.partition = ?1 ORDER BY m.sequence DESC LIMIT 1), 0),
           coalesce((SELECT p.last_position FROM outbox_partitions AS p WHERE p.partition = ?1), 0))
