-- Looked for in every partition: its own may not be known, and a lost one is to be found too.
-- CROSS JOIN holds the order: the other way round walks through all pending messages.
SELECT m.sequence, m.stream, m.partition, m.attempts, m.next_attempt_at, m.last_error,
       m.claimed_until
FROM outbox_partitions AS p
CROSS JOIN outbox_messages AS m ON m.partition = p.partition AND m.sequence = ?1
