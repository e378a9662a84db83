SELECT e.sequence FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.stream = ?1 AND e.sequence > ?2 AND k.publishes = 1
ORDER BY e.version LIMIT ?3
