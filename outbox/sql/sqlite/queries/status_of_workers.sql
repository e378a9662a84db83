SELECT w.worker, w.host, w.pid, w.started_at, w.heartbeat_until,
       (SELECT count(*) FROM outbox_partitions AS p WHERE p.owner = w.worker),
       w.broker, w.is_cut_off, w.presence
FROM outbox_workers AS w ORDER BY w.worker
