UPDATE inbox_held SET due_at = ?3
WHERE consumer = ?1 AND broker_stream = ?2 AND due_at > ?3
