-- Shuts out older writers.
-- Pending messages are counted when somebody looks, up to a limit: messages aren't numbered.
ALTER TABLE stela.outbox_messages DROP COLUMN position;
ALTER TABLE stela.outbox_partitions DROP COLUMN last_position;

-- The pointers of a group of appends: append_group calls it, under the order lock, with what the
-- participant made of the events that it wants.
CREATE OR REPLACE FUNCTION stela.add_data_rows(sequences bigint[], streams bigint[], keys bigint[])
RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  partitions CONSTANT integer := (SELECT g.partition_count FROM outbox_generations AS g
                                  ORDER BY g.generation DESC LIMIT 1);
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN partitions = 1 THEN 0 ELSE a.key % partitions + 1 END, a.sequence, a.stream
  FROM unnest(sequences, streams, keys) AS a(sequence, stream, key);
END $$;
