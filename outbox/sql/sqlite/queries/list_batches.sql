SELECT partition, first_sequence, last_sequence, count, redelivery, published_at, first_broker,
       last_broker
FROM outbox_batches WHERE partition = ?1
ORDER BY last_sequence DESC, redelivery DESC LIMIT ?2
