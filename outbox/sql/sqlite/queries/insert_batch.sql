INSERT INTO outbox_batches (partition, last_sequence, redelivery, first_sequence, count,
                            published_at, first_broker, last_broker)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
