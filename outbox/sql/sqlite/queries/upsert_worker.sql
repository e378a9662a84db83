INSERT INTO outbox_workers (worker, host, pid, started_at, heartbeat_until)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (worker) DO UPDATE SET heartbeat_until = excluded.heartbeat_until
