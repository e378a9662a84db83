INSERT INTO outbox_discarded (sequence, stream, discarded_at, reason, error)
VALUES (?1, ?2, ?3, ?4, ?5)
