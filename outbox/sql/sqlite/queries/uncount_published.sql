-- A partition that sent messages of others again may have counted it instead.
UPDATE outbox_partitions SET published = published - 1
WHERE partition =
  coalesce((SELECT p.partition FROM outbox_partitions AS p
            WHERE p.partition = ?1 AND p.published > 0),
           (SELECT p.partition FROM outbox_partitions AS p WHERE p.published > 0 LIMIT 1))
