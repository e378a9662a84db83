SELECT worker, heartbeat_until FROM outbox_workers ORDER BY worker
