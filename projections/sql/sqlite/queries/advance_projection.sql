UPDATE projections SET position = ?3 WHERE name = ?1 AND position = ?2
