UPDATE outbox_partitions
SET stopped = NULL, stopped_detail = NULL, attempts = 0, next_attempt_at = 0, last_error = NULL,
    broker_id = CASE WHEN ?3 THEN '' ELSE broker_id END,
    broker_sequence = coalesce(?2, broker_sequence)
WHERE partition = ?1
