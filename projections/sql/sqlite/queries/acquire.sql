-- Free, expired, or held until absurdly late (?5) by a clock that was wrong.
UPDATE projections SET owner = ?3, epoch = epoch + 1, lease_until = ?6
WHERE name = ?1 AND build = ?2 AND state <> 'retired'
  AND (owner IS NULL OR lease_until <= ?4 OR lease_until > ?5)
RETURNING epoch, position
