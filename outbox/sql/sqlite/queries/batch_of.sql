-- The run of the partition that ends first behind the sequence: it holds it if it begins before.
SELECT first_sequence, published_at FROM outbox_batches
WHERE partition = ?1 AND last_sequence >= ?2 AND redelivery = 0
ORDER BY last_sequence LIMIT 1
