SELECT sequence, reason FROM outbox_parked WHERE stream = ?1 ORDER BY sequence
