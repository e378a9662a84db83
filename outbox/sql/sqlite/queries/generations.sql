SELECT generation, first_sequence, partition_count FROM outbox_generations ORDER BY generation
