SELECT owner, epoch, lease_until, published_through, broker_sequence, broker_id,
       flight_count, flight_through, attempts, next_attempt_at, adopted
FROM outbox_partitions WHERE partition = ?1
