-- One row a partition: what is counted is kept, and what is looked for is the first or last row.
SELECT p.partition, p.owner, p.epoch, p.lease_until, p.published_through, p.broker_sequence,
       p.flight_count, p.published, p.redeliveries, p.parked, p.discarded, p.attempts,
       p.next_attempt_at, p.last_error, p.stopped, p.stopped_detail,
       max(p.last_position,
           coalesce((SELECT m.position FROM outbox_messages AS m
                     WHERE m.partition = p.partition ORDER BY m.sequence DESC LIMIT 1), 0))
         - p.removed,
       f.sequence, (SELECT e.recorded_at FROM events AS e WHERE e.sequence = f.sequence),
       (SELECT count(*) FROM outbox_messages AS m INDEXED BY outbox_messages_retrying
        WHERE m.partition = p.partition AND m.attempts > 0),
       (SELECT count(*) FROM outbox_messages AS m INDEXED BY outbox_messages_claimed
        WHERE m.claim IS NOT NULL AND m.partition = p.partition AND m.claimed_until > ?1),
       p.lost_at, p.lost, p.moved_at,
       (SELECT r.requested_at FROM outbox_redeliveries AS r
        WHERE r.partition = p.partition ORDER BY r.redelivery LIMIT 1)
FROM outbox_partitions AS p
LEFT JOIN outbox_messages AS f
  ON f.partition = p.partition
 AND f.sequence = (SELECT m.sequence FROM outbox_messages AS m
                   WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1)
WHERE p.retired_at IS NULL
ORDER BY p.partition
