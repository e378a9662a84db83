UPDATE projection_parked SET state = 'skipped' WHERE name = ?1 AND build = ?2 AND sequence = ?3 AND state <> 'skipped'
