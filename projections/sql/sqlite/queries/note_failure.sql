UPDATE projections
SET attempts = ?5, next_attempt_at = ?6, failing = ?7, error = ?8, halted = ?9
WHERE name = ?1 AND build = ?2 AND position = ?3 AND epoch = ?4 AND halted = 0
