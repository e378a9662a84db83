SELECT max(max(p.published_through,
               coalesce((SELECT b.last_sequence FROM outbox_batches AS b
                         WHERE b.partition = p.partition ORDER BY b.last_sequence DESC LIMIT 1),
                        0)))
FROM outbox_partitions AS p
