SELECT partition, lost FROM outbox_partitions WHERE lost_at IS NOT NULL ORDER BY partition
