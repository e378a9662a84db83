UPDATE projections SET position = ?4
WHERE name = ?1 AND build = ?2 AND position = ?3 AND state = 'living'
