INSERT INTO outbox_workers (worker, host, pid, started_at, heartbeat_until)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (worker) DO UPDATE SET
  host = excluded.host, pid = excluded.pid, started_at = excluded.started_at,
  heartbeat_until = excluded.heartbeat_until, broker = NULL, is_cut_off = 0
