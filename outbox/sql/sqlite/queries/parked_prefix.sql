SELECT sequence, was_lost FROM outbox_parked WHERE stream = ?1 AND sequence <= ?2 ORDER BY sequence
