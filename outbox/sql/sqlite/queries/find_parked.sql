SELECT stream, partition, parked_at, attempts, reason, error FROM outbox_parked WHERE sequence = ?1
