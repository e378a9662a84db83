INSERT INTO inbox_dead_letters (consumer, broker_stream, broker_sequence, broker_time, subject,
                                headers, payload, dead_at, attempts, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO NOTHING
