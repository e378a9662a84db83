SELECT m.partition, m.sequence, m.stream, e.stream, k.publishes, p.published_through,
       EXISTS (SELECT 1 FROM outbox_parked AS a WHERE a.sequence = m.sequence),
       EXISTS (SELECT 1 FROM outbox_discarded AS d WHERE d.sequence = m.sequence),
       m.attempts, m.position
FROM outbox_messages AS m
LEFT JOIN events AS e ON e.sequence = m.sequence
LEFT JOIN event_kinds AS k ON k.kind = e.kind
LEFT JOIN outbox_partitions AS p ON p.partition = m.partition
WHERE (m.partition, m.sequence) > (?1, ?2)
ORDER BY m.partition, m.sequence LIMIT ?3
