SELECT e.sequence, e.stream FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence BETWEEN ?1 AND ?2 AND k.publishes = 1
ORDER BY e.sequence LIMIT ?3
