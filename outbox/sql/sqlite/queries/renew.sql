UPDATE outbox_partitions SET lease_until = ?5
WHERE partition = ?1 AND owner = ?2 AND epoch = ?3 AND lease_until > ?4
