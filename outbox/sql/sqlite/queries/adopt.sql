UPDATE outbox_partitions
SET stopped = NULL, stopped_detail = NULL, attempts = 0, next_attempt_at = 0, last_error = NULL,
    adopted = CASE WHEN ?3 THEN 1 ELSE adopted END,
    broker_id = CASE WHEN ?2 IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(?2, broker_sequence)
WHERE partition = ?1
