-- Verify's queries for SQLite alone. Its queries for every engine are in operations/care.sql.

-- name: inspect_participants
-- gives: name text, detail text, registered_at time, checksum int
SELECT name, detail, registered_at, checksum FROM stela_participants ORDER BY name;

-- name: inspect_stream_index
-- takes: to int
-- gives: entries int
SELECT count(*) AS entries FROM streams INDEXED BY sqlite_autoindex_streams_1 WHERE stream <= :to;

-- name: inspect_event_kind_index
-- takes: to int
-- gives: entries int
SELECT count(*) AS entries FROM event_kinds INDEXED BY sqlite_autoindex_event_kinds_1
WHERE kind <= :to;

-- name: inspect_kind_block
-- takes: kind int, block int
-- gives: found int
SELECT 1 AS found FROM kind_blocks WHERE kind = :kind AND block = :block;
