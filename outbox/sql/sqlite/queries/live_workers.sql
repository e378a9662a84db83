SELECT count(*) FROM outbox_workers WHERE heartbeat_until > ?1
