-- What is parked, discarded, or to be sent again, with what its event says.
SELECT s.state, s.sequence, s.stream, s.partition, e.stream, k.publishes, p.partition,
       s.state = 'parked'
         AND EXISTS (SELECT 1 FROM outbox_discarded AS d WHERE d.sequence = s.sequence)
FROM (SELECT 'parked' AS state, sequence, stream, partition FROM outbox_parked
      UNION ALL
      SELECT 'discarded', sequence, stream, partition FROM outbox_discarded
      UNION ALL
      SELECT 'to be sent again', sequence, stream, partition FROM outbox_redeliveries) AS s
LEFT JOIN events AS e ON e.sequence = s.sequence
LEFT JOIN event_kinds AS k ON k.kind = e.kind
LEFT JOIN outbox_partitions AS p ON p.partition = s.partition
