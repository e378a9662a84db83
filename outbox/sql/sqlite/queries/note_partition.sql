UPDATE outbox_partitions SET attempts = ?4, next_attempt_at = ?5, last_error = ?6
WHERE partition = ?1 AND owner = ?2 AND epoch = ?3
