UPDATE outbox_partitions
SET published_through = max(published_through, ?4),
    lost = lost + CASE WHEN adopted AND lost_at IS NOT NULL THEN ?13 ELSE 0 END,
    lost_at = CASE WHEN adopted = 2 AND ?5 IS NOT NULL AND ?13 = 0 THEN NULL ELSE lost_at END,
    moved_at = CASE WHEN ?10 > 0 OR flight_count = 0 THEN ?12 ELSE moved_at END,
    broker_sequence = coalesce(?5, broker_sequence),
    broker_id = coalesce(?6, broker_id),
    adopted = CASE WHEN ?5 IS NULL THEN adopted ELSE 0 END,
    flight_count = ?7, flight_through = ?8,
    removed = removed + ?9, published = published + ?10,
    last_position = max(last_position, ?11)
WHERE partition = ?1 AND owner = ?2 AND epoch = ?3
