SELECT d.letter, c.name, d.broker_stream, d.broker_sequence, d.broker_time, d.subject, d.headers,
       d.payload, d.dead_at, d.attempts, d.error, d.retry
FROM inbox_dead_letters d JOIN inbox_consumers c USING (consumer)
WHERE (?1 = '' OR c.name = ?1) AND d.letter > ?2
ORDER BY d.letter LIMIT ?3
