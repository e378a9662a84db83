SELECT host, pid, presence, heartbeat_until FROM outbox_workers WHERE worker = ?1
