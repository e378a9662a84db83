SELECT h.held, h.source, h.stream, h.version, h.previous, h.event_id, h.broker_sequence, h.size,
       h.wish,
       EXISTS (SELECT 1 FROM inbox_held AS e
               WHERE e.consumer = h.consumer AND e.source = h.source AND e.stream = h.stream
                 AND e.version < h.version),
       EXISTS (SELECT 1 FROM inbox_failures AS f
               WHERE f.consumer = h.consumer AND f.source = h.source AND f.stream = h.stream
                 AND f.version < h.version),
       (SELECT p.version FROM inbox_positions AS p
        WHERE p.consumer = h.consumer AND p.source = h.source AND p.stream = h.stream)
FROM inbox_held AS h
WHERE h.consumer = ?1 AND h.broker_stream = ?2 AND h.due_at <= ?3
ORDER BY h.due_at LIMIT ?4
