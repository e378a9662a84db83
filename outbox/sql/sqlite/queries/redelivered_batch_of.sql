-- Wherever it was sent again: that may have been under another generation.
SELECT max(b.published_at) FROM outbox_partitions AS p
JOIN outbox_batches AS b
  ON b.partition = p.partition AND b.last_sequence = ?1 AND b.redelivery > 0
