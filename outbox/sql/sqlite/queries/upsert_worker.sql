INSERT INTO outbox_workers
  (worker, host, pid, presence, started_at, heartbeat_until, broker, is_cut_off)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (worker) DO UPDATE SET
  host = excluded.host, pid = excluded.pid, presence = excluded.presence,
  started_at = CASE WHEN presence IS excluded.presence THEN started_at
                    ELSE excluded.started_at END,
  heartbeat_until = excluded.heartbeat_until, broker = excluded.broker,
  is_cut_off = excluded.is_cut_off
