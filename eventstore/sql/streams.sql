-- Streams: the table streams, and the heads of streams.

-- name: insert_stream
-- takes: name text
INSERT INTO streams (stream, name)
VALUES ((SELECT coalesce(max(stream), 0) + 1 FROM streams), :name);

-- name: stream_name
-- takes: stream int
-- gives: name text
SELECT name FROM streams WHERE stream = :stream;

-- name: stream_head
-- The stream's number, and its last event's data; NULLs if it has none. `is_there` tells whether
-- the indexed event also exists in the table.
-- takes: name text
-- gives: stream int, version int?, is_there bool, kind int, published_before int
SELECT s.stream, e.version, r.stream IS s.stream AND r.version IS e.version AS is_there,
       r.kind, r.published_before
FROM streams AS s LEFT JOIN events AS e ON e.stream = s.stream
                  LEFT JOIN events AS r ON r.sequence = e.sequence
WHERE s.name = :name
ORDER BY e.version DESC LIMIT 1;

-- name: stream_last_version
-- takes: name text
-- gives: stream int, version int
SELECT s.stream, e.version
FROM streams AS s JOIN events AS e ON e.stream = s.stream
WHERE s.name = :name
ORDER BY e.version DESC LIMIT 1;

-- row: stream_place
-- gives: version int, sequence int

-- name: stream_sequences
-- takes: stream int, from int, limit int
-- gives: stream_place
SELECT version, sequence FROM events WHERE stream = :stream AND version >= :from
ORDER BY version LIMIT :limit;

-- name: stream_sequences_backward
-- takes: stream int, from int, limit int
-- gives: stream_place
SELECT version, sequence FROM events WHERE stream = :stream AND version <= :from
ORDER BY version DESC LIMIT :limit;
