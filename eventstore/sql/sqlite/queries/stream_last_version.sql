-- The number of the stream ?1, and its last version.
SELECT s.stream, e.version
FROM streams AS s JOIN events AS e ON e.stream = s.stream
WHERE s.name = ?1
ORDER BY e.version DESC LIMIT 1
