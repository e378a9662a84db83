SELECT count(*) FROM inbox_held WHERE consumer = ?1 AND due_at IS NOT NULL
