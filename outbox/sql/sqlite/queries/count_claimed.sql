UPDATE outbox_partitions
SET removed = removed + ?2, published = published + ?3, last_position = max(last_position, ?4)
WHERE partition = ?1
