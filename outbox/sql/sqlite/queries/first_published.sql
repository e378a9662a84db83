SELECT min(first_sequence) FROM outbox_generations
