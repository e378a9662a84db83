SELECT EXISTS (SELECT 1 FROM outbox_parked WHERE stream = ?1)
