SELECT letter, broker_stream, broker_sequence, broker_time, subject, headers, payload, attempts
FROM inbox_dead_letters WHERE consumer = ?1 AND retry = 1
ORDER BY letter LIMIT 1
