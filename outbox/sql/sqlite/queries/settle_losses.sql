UPDATE outbox_partitions SET lost_at = NULL, lost = 0 WHERE lost_at <= ?1
