UPDATE projections
SET position = failing, failing = 0, attempts = 0, next_attempt_at = 0, error = '', halted = 0
WHERE name = ?1 AND build = ?2 AND failing = ?3
