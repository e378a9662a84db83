SELECT sequence, attempts FROM projection_parked
WHERE name = ?1 AND build = ?2 AND state = 'retry' ORDER BY sequence LIMIT 1
