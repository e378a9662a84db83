-- Whoever has it: it finds out by the epoch.
UPDATE projections SET owner = ?3, epoch = epoch + 1, lease_until = ?4 WHERE name = ?1 AND build = ?2
RETURNING epoch, position
