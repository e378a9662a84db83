-- Names from ?1 up to, not including, ?2, and behind ?3.
SELECT s.name, e.version, e.sequence, e.recorded_at
FROM streams AS s JOIN events AS e
  ON e.stream = s.stream
 AND e.version = (SELECT max(l.version) FROM events AS l WHERE l.stream = s.stream)
WHERE s.name >= ?1 AND s.name < ?2 AND s.name > ?3
ORDER BY s.name LIMIT ?4
