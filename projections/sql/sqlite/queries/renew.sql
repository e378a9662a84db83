UPDATE projections SET lease_until = ?4 WHERE name = ?1 AND build = ?2 AND epoch = ?3
