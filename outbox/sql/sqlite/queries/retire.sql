-- Unless something waits in it, or somebody has it, or nobody has settled what it lost.
UPDATE outbox_partitions SET retired_at = ?2, owner = NULL, lease_until = 0
WHERE partition = ?1 AND retired_at IS NULL AND stopped IS NULL AND lost_at IS NULL
  AND (owner IS NULL OR lease_until <= ?2) AND redeliveries = 0
  AND NOT EXISTS (SELECT 1 FROM outbox_messages AS m WHERE m.partition = ?1)
