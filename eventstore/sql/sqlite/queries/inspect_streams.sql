-- Each stream from the table, and what the index of names says of it.
SELECT s.stream, s.name,
       (SELECT i.stream FROM streams AS i INDEXED BY sqlite_autoindex_streams_1
        WHERE i.name = s.name)
FROM streams AS s NOT INDEXED
WHERE s.stream > ?1
ORDER BY s.stream LIMIT ?2
