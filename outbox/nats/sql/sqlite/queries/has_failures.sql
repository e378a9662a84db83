SELECT 1 FROM inbox_failures WHERE consumer = ?1 LIMIT 1
