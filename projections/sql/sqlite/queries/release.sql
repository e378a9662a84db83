UPDATE projections SET owner = NULL, lease_until = 0 WHERE name = ?1 AND build = ?2 AND epoch = ?3
