SELECT sequence, stream, partition, parked_at, attempts, reason, error
FROM outbox_parked WHERE sequence > ?1 AND (?2 IS NULL OR partition = ?2)
ORDER BY sequence LIMIT ?3
