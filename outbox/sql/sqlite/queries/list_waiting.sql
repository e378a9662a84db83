SELECT sequence, stream, partition, attempts, next_attempt_at, last_error, claimed_until
FROM outbox_messages WHERE partition = ?1 AND sequence > ?2
ORDER BY sequence LIMIT ?3
