DELETE FROM outbox_workers WHERE heartbeat_until < ?1
