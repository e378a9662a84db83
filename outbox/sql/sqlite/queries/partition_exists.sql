SELECT EXISTS (SELECT 1 FROM outbox_partitions WHERE partition = ?1)
