UPDATE outbox_partitions
SET published_through = ?2,
    last_position = max(last_position, coalesce(
        (SELECT m.position FROM outbox_messages AS m WHERE m.partition = ?1 AND m.sequence = ?2), 0))
WHERE partition = ?1 AND published_through < ?2
