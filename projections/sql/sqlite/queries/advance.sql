UPDATE projections
SET position = ?5, lease_until = ?6, attempts = 0, next_attempt_at = 0, failing = 0, error = ''
WHERE name = ?1 AND build = ?2 AND position = ?3 AND epoch = ?4 AND halted = 0
  AND state <> 'retired'
