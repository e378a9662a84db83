-- What verify reads: tables and indexes each for themselves, so that neither hides what is wrong with
-- the other.

-- name: inspect_participants
-- gives: name text, detail text, registered_at time, checksum int
SELECT name, detail, registered_at, checksum FROM stela_participants ORDER BY name;

-- name: inspect_streams
-- Each stream from the table, and what the index of names says of it.
-- takes: after int, limit int
-- gives: stream int, name text, in_index int?
SELECT s.stream, s.name,
       (SELECT i.stream FROM streams AS i INDEXED BY sqlite_autoindex_streams_1
        WHERE i.name = s.name) AS in_index
FROM streams AS s NOT INDEXED
WHERE s.stream > :after
ORDER BY s.stream LIMIT :limit;

-- name: inspect_stream_index
-- takes: to int
-- gives: entries int
SELECT count(*) AS entries FROM streams INDEXED BY sqlite_autoindex_streams_1 WHERE stream <= :to;

-- name: inspect_event_kinds
-- Each kind from the table, and what the index of keys says of it.
-- gives: kind int, category text, type text, version int, publishes int, in_index int?
SELECT k.kind, k.category, k.type, k.version, k.publishes,
       (SELECT i.kind FROM event_kinds AS i INDEXED BY sqlite_autoindex_event_kinds_1
        WHERE i.category = k.category AND i.type = k.type AND i.version = k.version
          AND i.publishes = k.publishes) AS in_index
FROM event_kinds AS k NOT INDEXED
ORDER BY k.kind;

-- name: inspect_event_kind_index
-- gives: entries int
SELECT count(*) AS entries FROM event_kinds INDEXED BY sqlite_autoindex_event_kinds_1;

-- name: inspect_kind_block
-- takes: kind int, block int
-- gives: found int
SELECT 1 AS found FROM kind_blocks WHERE kind = :kind AND block = :block;

-- name: inspect_versions
-- The index of streams and versions as it stands, and the rows that it points to. The order is that
-- of the index: an ORDER BY out here would hide what is wrong with it.
-- takes: stream int, version int, limit int
-- gives: stream int, version int, sequence int, event_stream int?, event_version int, kind int,
--        published_before int
SELECT i.stream, i.version, i.sequence, e.stream AS event_stream, e.version AS event_version,
       e.kind, e.published_before
FROM (SELECT x.stream, x.version, x.sequence
      FROM events AS x INDEXED BY sqlite_autoindex_events_1
      WHERE (x.stream, x.version) > (:stream, :version)
      ORDER BY x.stream, x.version LIMIT :limit) AS i
     LEFT JOIN events AS e NOT INDEXED ON e.sequence = i.sequence;

-- name: repeated_versions
-- The index, which would refuse them, may be of an older state.
-- takes: through int, limit int
-- gives: stream int, version int, first int, last int
SELECT stream, version, min(sequence) AS first, max(sequence) AS last
FROM events NOT INDEXED WHERE sequence <= :through
GROUP BY stream, version HAVING count(*) > 1 LIMIT :limit;

-- name: inspect_append_ids
-- `bytes` are those that the database holds, whose order is that of the table.
-- takes: from text, limit int
-- gives: append_id text, first_sequence int, last_sequence int, checksum int, bytes blob
SELECT append_id, first_sequence, last_sequence, checksum, CAST(append_id AS BLOB) AS bytes
FROM append_ids
WHERE append_id >= :from
ORDER BY append_id LIMIT :limit;

-- name: inspect_snapshots
-- takes: after int, limit int
-- gives: stream int, name text?, version int, sequence int, state_version int, taken_at time,
--        checksum int, payload blob, event_stream int?, event_version int
SELECT n.stream, s.name, n.version, n.sequence, n.state_version, n.taken_at, n.checksum, n.payload,
       e.stream AS event_stream, e.version AS event_version
FROM snapshots AS n
     LEFT JOIN streams AS s ON s.stream = n.stream
     LEFT JOIN events AS e NOT INDEXED ON e.sequence = n.sequence
WHERE n.stream > :after
ORDER BY n.stream LIMIT :limit;

-- name: inspect_tags
-- takes: sequence int, part int, limit int
-- gives: sequence int, part int, tags text, checksum int, kind int?
SELECT t.sequence, t.part, t.tags, t.checksum, e.kind
FROM event_tags AS t LEFT JOIN events AS e NOT INDEXED ON e.sequence = t.sequence
WHERE (t.sequence, t.part) > (:sequence, :part)
ORDER BY t.sequence, t.part LIMIT :limit;

-- name: inspect_tag_place
-- takes: tag int, sequence int
-- gives: kind int
SELECT kind FROM tag_index WHERE tag = :tag AND sequence = :sequence;

-- name: inspect_tag_index
-- takes: to int
-- gives: entries int
SELECT count(*) AS entries FROM tag_index WHERE sequence <= :to;

-- name: inspect_tag_entries
-- takes: tag int, sequence int, limit int
-- gives: tag int, sequence int
SELECT tag, sequence FROM tag_index WHERE (tag, sequence) > (:tag, :sequence)
ORDER BY tag, sequence LIMIT :limit;

-- name: inspect_next_event
-- takes: from int
-- gives: sequence int
SELECT sequence FROM events WHERE sequence >= :from ORDER BY sequence LIMIT 1;

-- name: inspect_untagged
-- Events without a tag that every event of their type has, beside those whose stream is it.
-- takes: from int, to int
-- gives: sequence int, category text
SELECT e.sequence, f.category
FROM events AS e NOT INDEXED
     JOIN event_kinds AS k ON k.kind = e.kind
     JOIN tag_types AS f ON f.type = k.type
WHERE e.sequence BETWEEN :from AND :to
  AND f.always = 1 AND e.sequence >= f.since AND f.category <> k.category
  AND NOT EXISTS (SELECT 1 FROM event_tags AS t
                  WHERE t.sequence = e.sequence
                    AND instr(' ' || t.tags, ' ' || f.category || '-') > 0)
ORDER BY e.sequence, f.category;
