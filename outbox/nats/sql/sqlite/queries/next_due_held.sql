SELECT due_at FROM inbox_held
WHERE consumer = ?1 AND broker_stream = ?2 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1
