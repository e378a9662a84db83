SELECT sequence, stream, partition, attempts, next_attempt_at, last_error, claimed_until
FROM outbox_messages INDEXED BY outbox_messages_retrying WHERE partition = ?1 AND sequence > ?2 AND attempts > 0
ORDER BY sequence LIMIT ?3
