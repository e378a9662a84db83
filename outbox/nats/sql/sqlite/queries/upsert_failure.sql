INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error)
VALUES (?1, ?2, ?3, ?4, 1, ?5)
ON CONFLICT DO UPDATE SET attempts = attempts + 1, error = excluded.error
RETURNING attempts
