SELECT sequence, stream, partition, discarded_at, 0, reason, error
FROM outbox_discarded WHERE sequence > ?1 AND (?2 IS NULL OR partition = ?2)
ORDER BY sequence LIMIT ?3
