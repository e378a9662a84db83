INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error,
                           was_lost)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
