-- Queries by which StoreOperations lists and counts, for every engine.

-- name: list_streams
-- Names from `begin` up to, not including, `end`, and after `after`.
-- takes: begin text, end text, after text, limit int
-- gives: name text, version int, sequence int, recorded_at time
SELECT s.name, e.version, e.sequence, e.recorded_at
FROM streams AS s JOIN events AS e
  ON e.stream = s.stream
 AND e.version = (SELECT max(l.version) FROM events AS l WHERE l.stream = s.stream)
WHERE s.name >= :begin AND s.name < :end AND s.name > :after
ORDER BY s.name LIMIT :limit;

-- name: list_snapshots
-- The snapshots of the streams that list_streams would list.
-- takes: begin text, end text, after text, limit int
-- gives: name text, version int, sequence int, state_version int, taken_at time, payload_bytes int
SELECT s.name, n.version, n.sequence, n.state_version, n.taken_at,
       length(n.payload) AS payload_bytes
FROM streams AS s JOIN snapshots AS n ON n.stream = s.stream
WHERE s.name >= :begin AND s.name < :end AND s.name > :after
ORDER BY s.name LIMIT :limit;

-- name: count_events
-- takes: from int, to int
-- gives: kind int, events int, payload_bytes int, first int, last int
SELECT kind, count(*) AS events, sum(length(payload)) AS payload_bytes, min(sequence) AS first,
       max(sequence) AS last
FROM events WHERE sequence BETWEEN :from AND :to GROUP BY kind;

-- name: kinds
-- gives: kind int, category text, type text, version int, publishes bool
SELECT kind, category, type, version, publishes FROM event_kinds ORDER BY kind;

-- name: recorded_time
-- The time of the first event in a range.
-- takes: from int, to int
-- gives: sequence int, recorded_at time
SELECT sequence, recorded_at FROM events WHERE sequence BETWEEN :from AND :to
ORDER BY sequence LIMIT 1;

-- name: participants
-- gives: name text, detail text, registered_at time
SELECT name, detail, registered_at FROM stela_participants ORDER BY name;

-- name: list_append_ids
-- After `after`.
-- takes: after text, limit int
-- gives: append_id text, used_at time
SELECT append_id, used_at FROM append_ids WHERE append_id > :after
ORDER BY append_id LIMIT :limit;

-- name: delete_append_id
-- Unless it was used again since it was looked at.
-- takes: append_id text, used_at time
DELETE FROM append_ids WHERE append_id = :append_id AND used_at = :used_at;

-- name: last_sequence
-- gives: last int
SELECT coalesce(max(sequence), 0) AS last FROM events;

-- name: next_sequence
-- takes: from int, to int
-- gives: sequence int
SELECT sequence FROM events WHERE sequence BETWEEN :from AND :to ORDER BY sequence LIMIT 1;
