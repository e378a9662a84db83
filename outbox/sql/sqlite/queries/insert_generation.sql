INSERT INTO outbox_generations (generation, first_sequence, partition_count) VALUES (?1, ?2, ?3)
