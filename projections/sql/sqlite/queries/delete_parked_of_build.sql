DELETE FROM projection_parked WHERE name = ?1 AND build = ?2
