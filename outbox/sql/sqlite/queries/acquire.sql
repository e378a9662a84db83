-- Free, expired, or held until absurdly late (?4) by a clock that was wrong.
UPDATE outbox_partitions
SET owner = ?2, epoch = epoch + 1, lease_until = ?5
WHERE partition = ?1 AND stopped IS NULL
  AND (owner IS NULL OR lease_until <= ?3 OR lease_until > ?4)
