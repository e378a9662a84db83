SELECT e.stream, s.name, e.version, e.event_id, k.type, k.publishes, e.recorded_at
FROM events AS e
LEFT JOIN streams AS s ON s.stream = e.stream
LEFT JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence = ?1
