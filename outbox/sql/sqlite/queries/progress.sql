-- The end of what is published, and up to where the owner, if there is one now, has messages in
-- flight.
SELECT max(p.published_through,
           coalesce((SELECT b.last_sequence FROM outbox_batches AS b
                     WHERE b.partition = ?1 AND b.redelivery = 0
                     ORDER BY b.last_sequence DESC LIMIT 1), 0)),
       CASE WHEN p.owner IS NOT NULL AND p.lease_until > ?2 AND p.flight_count > 0
             AND p.next_attempt_at <= ?2
            THEN p.flight_through ELSE 0 END
FROM outbox_partitions AS p WHERE p.partition = ?1
