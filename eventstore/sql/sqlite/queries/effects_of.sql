SELECT sequence FROM events
WHERE sequence BETWEEN ?1 AND ?2 AND causation_id = ?3 ORDER BY sequence LIMIT ?4
