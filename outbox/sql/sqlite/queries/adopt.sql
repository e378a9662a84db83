UPDATE outbox_partitions
SET stopped = NULL, stopped_detail = NULL, attempts = 0, next_attempt_at = 0, last_error = NULL,
    lost_at = CASE WHEN stopped = 'broker_lost' THEN ?4 ELSE lost_at END,
    -- Without a number, the owner that adopts counts what is gone.
    lost = lost + CASE WHEN stopped = 'broker_lost' AND ?2 < broker_sequence
                       THEN broker_sequence - ?2 ELSE 0 END,
    adopted = CASE WHEN ?3 THEN 1 ELSE adopted END,
    broker_id = CASE WHEN ?2 IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(?2, broker_sequence)
WHERE partition = ?1
