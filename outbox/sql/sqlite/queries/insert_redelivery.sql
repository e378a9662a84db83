INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, requested_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
