SELECT held, source, stream, version, previous, event_id, broker_sequence, size, wish,
       broker_stream
FROM inbox_held
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version > ?4 ORDER BY version LIMIT ?5
