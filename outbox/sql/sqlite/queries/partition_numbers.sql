SELECT partition FROM outbox_partitions ORDER BY partition
