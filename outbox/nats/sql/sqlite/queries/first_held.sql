SELECT version FROM inbox_held
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 ORDER BY version LIMIT 1
