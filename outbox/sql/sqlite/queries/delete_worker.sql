DELETE FROM outbox_workers WHERE worker = ?1
