-- lost_at: the broker lost messages, or stands before what the partition knows, or a fenced owner
-- is still to look where it stands.
UPDATE outbox_partitions
SET stopped = NULL, stopped_detail = NULL, attempts = 0, next_attempt_at = 0, last_error = NULL,
    lost_at = CASE WHEN stopped = 'broker_lost' OR ?2 < broker_sequence
                     OR (?2 IS NULL
                         AND stopped IN ('foreign_writer', 'unreadable', 'store_went_back'))
                   THEN ?4 ELSE lost_at END,
    -- Without a number, the owner that adopts counts what is gone.
    lost = lost + CASE WHEN ?2 < broker_sequence THEN broker_sequence - ?2 ELSE 0 END,
    -- 2: that owner takes lost_at back if nothing is gone.
    adopted = CASE WHEN NOT ?3 THEN adopted
                   WHEN stopped = 'broker_lost' OR lost_at IS NOT NULL OR ?2 IS NOT NULL THEN 1
                   ELSE 2 END,
    broker_id = CASE WHEN ?2 IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(?2, broker_sequence)
WHERE partition = ?1
