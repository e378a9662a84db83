UPDATE outbox_partitions SET removed = removed + ?2, published = published + ?3 WHERE partition = ?1
