UPDATE outbox_partitions
SET removed = removed + 1, last_position = max(last_position, ?2) WHERE partition = ?1
