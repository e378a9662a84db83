-- Nobody owns the partition; the number only tells one who claims from the other.
UPDATE outbox_partitions SET epoch = epoch + 1 WHERE partition = ?1 AND stopped IS NULL
RETURNING epoch, attempts, next_attempt_at
