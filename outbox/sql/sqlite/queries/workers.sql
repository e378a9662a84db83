SELECT worker, heartbeat_until, is_cut_off FROM outbox_workers ORDER BY worker
