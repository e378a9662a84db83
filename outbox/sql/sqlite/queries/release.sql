UPDATE outbox_partitions SET owner = NULL, lease_until = 0 WHERE partition = ?1 AND owner = ?2 AND epoch = ?3
