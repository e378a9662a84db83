-- The names of streams.

-- name: streams
-- doing: reading the names of streams
-- takes: streams int[]
-- gives: stream int, name text
SELECT stream, name FROM stela.streams WHERE stream = ANY (:streams);

-- name: stream
-- doing: finding a stream
-- takes: stream int
-- gives: name text
SELECT name FROM stela.streams WHERE stream = :stream;
