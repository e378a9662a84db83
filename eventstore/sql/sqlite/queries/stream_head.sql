-- The stream's number, and what its last event says; NULLs if it has none.
SELECT s.stream, e.version, e.kind, e.published_before
FROM streams AS s LEFT JOIN events AS e ON e.stream = s.stream
WHERE s.name = ?1
ORDER BY e.version DESC LIMIT 1
