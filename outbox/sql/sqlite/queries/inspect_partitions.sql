SELECT p.partition, p.epoch, p.published_through, p.parked, p.redeliveries,
       max(p.last_position,
           coalesce((SELECT m.position FROM outbox_messages AS m
                     WHERE m.partition = p.partition ORDER BY m.sequence DESC LIMIT 1), 0))
         - p.removed,
       (SELECT count(*) FROM outbox_messages AS m WHERE m.partition = p.partition),
       (SELECT count(*) FROM outbox_parked AS a WHERE a.partition = p.partition),
       (SELECT count(*) FROM outbox_redeliveries AS r WHERE r.partition = p.partition)
FROM outbox_partitions AS p ORDER BY p.partition
