DELETE FROM projections WHERE name = ?1 AND build = ?2
