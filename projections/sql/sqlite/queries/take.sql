UPDATE projections SET owner = NULL, epoch = epoch + 1, lease_until = 0 WHERE name = ?1 AND build = ?2
RETURNING epoch, position
