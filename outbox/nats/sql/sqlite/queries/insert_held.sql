INSERT INTO inbox_held (consumer, source, stream, version, previous, event_id, broker_stream,
                        broker_sequence, size, held_at, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
        CASE WHEN EXISTS (SELECT 1 FROM inbox_held
                          WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version < ?4)
             THEN NULL ELSE ?11 END)
ON CONFLICT (consumer, source, stream, version) DO UPDATE
SET event_id = excluded.event_id, broker_stream = excluded.broker_stream,
    broker_sequence = excluded.broker_sequence, size = excluded.size
