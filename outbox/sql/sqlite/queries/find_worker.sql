SELECT host, pid, heartbeat_until FROM outbox_workers WHERE worker = ?1
