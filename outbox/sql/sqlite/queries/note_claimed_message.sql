UPDATE outbox_messages SET attempts = ?3, next_attempt_at = ?4, last_error = ?5
WHERE partition = ?1 AND sequence = ?2 AND claim = ?6
