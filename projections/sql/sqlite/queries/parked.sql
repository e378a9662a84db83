SELECT sequence, state, parked_at, attempts, error
FROM projection_parked WHERE name = ?1 AND build = ?2 ORDER BY sequence
