UPDATE outbox_partitions SET stopped = ?2, stopped_detail = ?3
WHERE partition = ?1 AND stopped IS NULL
