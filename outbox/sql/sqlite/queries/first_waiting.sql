-- The lowest sequence that waits anywhere, and the lowest generation that is to be sent again.
SELECT (SELECT min(first) FROM (
          SELECT (SELECT m.sequence FROM outbox_messages AS m
                  WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1) AS first
          FROM outbox_partitions AS p)),
       (SELECT min(generation) FROM outbox_redeliveries)
