UPDATE projections SET state = ?3, changed_at = ?4 WHERE name = ?1 AND build = ?2
