-- Wherever it was sent again: that may have been under another generation.
-- CROSS JOIN holds the order: the other way round walks through all batches.
SELECT max(b.published_at) FROM outbox_partitions AS p
CROSS JOIN outbox_batches AS b
  ON b.partition = p.partition AND b.last_sequence = ?1 AND b.redelivery > 0
