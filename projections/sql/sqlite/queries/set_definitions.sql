UPDATE projections SET definitions = ?3 WHERE name = ?1 AND build = ?2
