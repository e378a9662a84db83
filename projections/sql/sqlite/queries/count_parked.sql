SELECT count(*) FILTER (WHERE state <> 'skipped'), count(*) FILTER (WHERE state = 'skipped')
FROM projection_parked WHERE name = ?1 AND build = ?2
