-- How far a partition is, and up to where its owner, if it has one now, has messages in flight.
SELECT published_through,
       CASE WHEN owner IS NOT NULL AND lease_until > ?2 AND flight_count > 0
            THEN flight_through ELSE 0 END
FROM outbox_partitions WHERE partition = ?1
