UPDATE projections SET halted = 0, attempts = 0, next_attempt_at = 0
WHERE name = ?1 AND build = ?2 AND (halted = 1 OR failing > 0)
