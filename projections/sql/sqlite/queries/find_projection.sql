SELECT version, position FROM projections WHERE name = ?1
