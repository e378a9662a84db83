UPDATE outbox_partitions SET attempts = ?2, next_attempt_at = ?3, last_error = ?4 WHERE partition = ?1
