SELECT sequence, stream, partition, attempts, 0, last_error, 0, redelivery
FROM outbox_redeliveries WHERE partition = ?1 AND sequence > ?2
ORDER BY sequence LIMIT ?3
