SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = ?1)
  AND version BETWEEN ?2 AND ?3 AND sequence <= ?4
ORDER BY version LIMIT ?5
