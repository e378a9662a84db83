SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence
