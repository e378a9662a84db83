INSERT INTO projection_parked (name, build, sequence, state, parked_at, attempts, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name, build, sequence)
DO UPDATE SET state = excluded.state, attempts = excluded.attempts, error = excluded.error
