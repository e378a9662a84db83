-- The pointer of an event that append_one appends, with what the participant made of it.
CREATE FUNCTION stela.add_plain_row(the_sequence bigint, the_stream bigint, the_key bigint)
RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN g.partition_count = 1 THEN 0 ELSE the_key % g.partition_count + 1 END,
         the_sequence, the_stream
  FROM outbox_generations AS g ORDER BY g.generation DESC LIMIT 1;
END $$;
