INSERT INTO outbox_workers (worker, host, pid, started_at, heartbeat_until, broker, is_cut_off)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (worker) DO UPDATE SET
  heartbeat_until = excluded.heartbeat_until, broker = excluded.broker,
  is_cut_off = excluded.is_cut_off
