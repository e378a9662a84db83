-- As list_streams.
SELECT s.name, n.version, n.sequence, n.state_version, n.taken_at, length(n.payload)
FROM streams AS s JOIN snapshots AS n ON n.stream = s.stream
WHERE s.name >= ?1 AND s.name < ?2 AND s.name > ?3
ORDER BY s.name LIMIT ?4
