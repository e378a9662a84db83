SELECT coalesce(min(first_sequence), 1) FROM outbox_generations
