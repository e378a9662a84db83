SELECT h.held, c.name, h.source, h.stream, h.version, h.broker_stream,
       h.broker_sequence, h.held_at, h.due_at, h.wish, coalesce(f.attempts, 0),
       coalesce(f.error, ''),
       (SELECT count(*) FROM inbox_held AS b
        WHERE b.consumer = h.consumer AND b.source = h.source AND b.stream = h.stream
          AND b.version > h.version)
FROM inbox_held AS h
  JOIN inbox_consumers AS c USING (consumer)
  LEFT JOIN inbox_failures AS f
    ON f.consumer = h.consumer AND f.source = h.source AND f.stream = h.stream
      AND f.version = h.version
WHERE (?1 = '' OR c.name = ?1) AND h.held > ?2 AND h.due_at IS NOT NULL
ORDER BY h.held LIMIT ?3
