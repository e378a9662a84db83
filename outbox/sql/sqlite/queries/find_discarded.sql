SELECT stream, partition, discarded_at, 0, reason, error FROM outbox_discarded WHERE sequence = ?1
