-- Not while the log has a batch around it: that would make it look published.
SELECT d.sequence FROM outbox_discarded AS d
WHERE d.sequence > ?1 AND d.discarded_at < ?2
  AND coalesce((SELECT b.first_sequence FROM outbox_batches AS b
                WHERE b.partition = d.partition AND b.last_sequence >= d.sequence
                  AND b.redelivery = 0
                ORDER BY b.last_sequence LIMIT 1), d.sequence + 1) > d.sequence
ORDER BY d.sequence LIMIT ?3
