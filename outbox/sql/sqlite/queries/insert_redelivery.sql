INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, requested_at,
                                 was_lost)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
