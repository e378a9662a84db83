SELECT at FROM outbox_actions ORDER BY action LIMIT 1
