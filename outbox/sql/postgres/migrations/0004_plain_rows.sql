-- The pointers of a group of appends: append_group_plain calls it, under the order lock, with what the
-- participant made of each event, NULL if nothing.
CREATE FUNCTION stela.add_plain_rows(bases bigint[], streams bigint[], event_appends integer[],
                                     event_ordinals integer[], event_keys bigint[])
RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN g.partition_count = 1 THEN 0 ELSE e.key % g.partition_count + 1 END,
         bases[e.append] + e.ordinal, streams[e.append]
  FROM (SELECT o.partition_count FROM outbox_generations AS o
        ORDER BY o.generation DESC LIMIT 1) AS g,
       (SELECT unnest(event_appends) AS append, unnest(event_ordinals) AS ordinal,
               unnest(event_keys) AS key) AS e
  WHERE bases[e.append] >= 0 AND e.key IS NOT NULL;
END $$;
