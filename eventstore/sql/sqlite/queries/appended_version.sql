-- What one stream got from an append that took the sequences ?2 to ?3.
SELECT count(*), coalesce(max(e.version), 0)
FROM events AS e
WHERE e.sequence BETWEEN ?2 AND ?3
  AND e.stream = (SELECT s.stream FROM streams AS s WHERE s.name = ?1)
