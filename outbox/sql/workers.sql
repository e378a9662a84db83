-- Relay workers: the table outbox_workers.

-- name: find_worker
-- takes: worker text
-- gives: host text, pid int, presence int, heartbeat_until time, heartbeat_ttl int,
--        is_cut_off bool
SELECT host, pid, presence, heartbeat_until, heartbeat_ttl, is_cut_off
FROM outbox_workers WHERE worker = :worker;

-- name: upsert_worker
-- takes: worker text, host text, pid int, presence int, now time, until time, ttl int,
--        broker text, is_cut_off bool
INSERT INTO outbox_workers
  (worker, host, pid, presence, started_at, heartbeat_until, heartbeat_ttl, broker, is_cut_off,
   broker_since)
VALUES (:worker, :host, :pid, :presence, :now, :until, :ttl, :broker, :is_cut_off, :now)
ON CONFLICT (worker) DO UPDATE SET
  host = excluded.host, pid = excluded.pid, presence = excluded.presence,
  started_at = CASE WHEN outbox_workers.presence = excluded.presence
                    THEN outbox_workers.started_at
                    ELSE excluded.started_at END,
  heartbeat_until = excluded.heartbeat_until, heartbeat_ttl = excluded.heartbeat_ttl,
  -- The state is the part before the colon.
  broker_since = CASE WHEN substr(outbox_workers.broker, 1, instr(outbox_workers.broker || ':', ':'))
                         = substr(excluded.broker, 1, instr(excluded.broker || ':', ':'))
                      THEN outbox_workers.broker_since
                      ELSE excluded.broker_since END,
  broker = excluded.broker, is_cut_off = excluded.is_cut_off;

-- name: purge_worker
-- Unless it has sent a heartbeat meanwhile.
-- takes: worker text, found_until time
DELETE FROM outbox_workers WHERE worker = :worker AND heartbeat_until = :found_until;

-- name: delete_worker
-- Unless another worker has taken the name.
-- takes: worker text, presence int
DELETE FROM outbox_workers WHERE worker = :worker AND presence = :presence;

-- name: workers
-- gives: worker text, host text, pid int, presence int, heartbeat_until time, heartbeat_ttl int,
--        is_cut_off bool
SELECT worker, host, pid, presence, heartbeat_until, heartbeat_ttl, is_cut_off
FROM outbox_workers ORDER BY worker;
