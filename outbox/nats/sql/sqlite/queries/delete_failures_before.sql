DELETE FROM inbox_failures
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version < ?4
RETURNING version, error
