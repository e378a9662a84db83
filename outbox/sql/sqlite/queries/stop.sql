UPDATE outbox_partitions SET stopped = ?4, stopped_detail = ?5
WHERE partition = ?1 AND owner = ?2 AND epoch = ?3
