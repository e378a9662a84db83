INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, reason, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING
