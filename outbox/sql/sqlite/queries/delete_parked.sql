DELETE FROM outbox_parked WHERE sequence = ?1
