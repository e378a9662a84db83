-- Verify's queries, for every engine. They read tables and indexes separately where SQLite allows
-- it, so that neither hides damage of the other.

-- row: finding
-- gives: subject text, detail text

-- name: inspect_last_stream
-- gives: stream int
SELECT coalesce(max(stream), 0) AS stream FROM streams;

-- name: inspect_streams
-- Each stream from the table, and its number in the index of names.
-- takes: after int, limit int
-- gives: stream int, name text, in_index int?
SELECT s.stream, s.name,
       (SELECT i.stream FROM streams AS i INDEXED BY sqlite_autoindex_streams_1
        WHERE i.name = s.name) AS in_index
FROM streams AS s NOT INDEXED
WHERE s.stream > :after
ORDER BY s.stream LIMIT :limit;
-- engine: postgres
SELECT s.stream, s.name, s.stream AS in_index FROM streams AS s
WHERE s.stream > :after
ORDER BY s.stream LIMIT :limit;

-- name: inspect_kinds
-- Each kind from the table, and its number in the index of keys.
-- gives: kind int, category text, type text, version int, publishes int, in_index int?
SELECT k.kind, k.category, k.type, k.version, k.publishes,
       (SELECT i.kind FROM event_kinds AS i INDEXED BY sqlite_autoindex_event_kinds_1
        WHERE i.category = k.category AND i.type = k.type AND i.version = k.version
          AND i.publishes = k.publishes) AS in_index
FROM event_kinds AS k NOT INDEXED
ORDER BY k.kind;
-- engine: postgres
SELECT k.kind, k.category, k.type, k.version, k.publishes, k.kind AS in_index
FROM event_kinds AS k ORDER BY k.kind;

-- name: inspect_kind_numbers
-- Kinds whose numbers don't continue the sequence from the start.
-- gives: finding
SELECT CAST(n.kind AS text) AS subject, CAST(n.expected AS text) AS detail
FROM (SELECT k.kind, coalesce(lag(k.kind) OVER (ORDER BY k.kind), 0) + 1 AS expected
      FROM event_kinds AS k) AS n
WHERE n.kind <> n.expected ORDER BY n.kind;

-- name: inspect_versions
-- The entries of the index of streams and versions, with the rows that they point to. In index
-- order: an outer ORDER BY would hide damage to the index.
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
-- engine: postgres
SELECT e.stream, e.version, e.sequence, e.stream AS event_stream, e.version AS event_version,
       e.kind, e.published_before
FROM events AS e
WHERE (e.stream, e.version) > (:stream, :version)
ORDER BY e.stream, e.version LIMIT :limit;

-- name: inspect_repeated_versions
-- Duplicates: the index, which should refuse them, may be of an older state.
-- takes: through int, limit int
-- gives: stream int, version int, first int, last int
SELECT stream, version, min(sequence) AS first, max(sequence) AS last
FROM events NOT INDEXED WHERE sequence <= :through
GROUP BY stream, version HAVING count(*) > 1 LIMIT :limit;

-- name: inspect_append_ids
-- `bytes` are the stored bytes, which the table is ordered by.
-- takes: after text, limit int
-- gives: append_id text, first_sequence int, last_sequence int, checksum int, bytes blob,
--        last_event int
SELECT append_id, first_sequence, last_sequence, checksum, CAST(append_id AS BLOB) AS bytes,
       (SELECT coalesce(max(e.sequence), 0) FROM events AS e) AS last_event
FROM append_ids
WHERE append_id > :after
ORDER BY append_id LIMIT :limit;
-- engine: postgres
SELECT append_id, first_sequence, last_sequence, checksum, convert_to(append_id, 'UTF8') AS bytes,
       (SELECT coalesce(max(e.sequence), 0) FROM events AS e) AS last_event
FROM append_ids
WHERE append_id > :after
ORDER BY append_id LIMIT :limit;

-- name: inspect_append_groups
-- Only on PostgreSQL: each commit has a row there.
-- gives: finding
SELECT '' AS subject, '' AS detail WHERE 1 = 0;
-- engine: postgres
SELECT g.group_id::text AS subject, '' AS detail FROM append_groups AS g
WHERE NOT g.is_void
  AND g.last_sequence > (SELECT coalesce(max(e.sequence), 0) FROM events AS e)
LIMIT 100;

-- name: inspect_snapshots
-- takes: after int, limit int
-- gives: stream int, name text?, version int, sequence int, state_version int, taken_at time,
--        checksum int, payload blob, event_stream int?, event_version int?
SELECT n.stream, (SELECT s.name FROM streams AS s WHERE s.stream = n.stream) AS name,
       n.version, n.sequence, n.state_version, n.taken_at, n.checksum, n.payload,
       (SELECT e.stream FROM events AS e WHERE e.sequence = n.sequence) AS event_stream,
       (SELECT e.version FROM events AS e WHERE e.sequence = n.sequence) AS event_version
FROM snapshots AS n
WHERE n.stream > :after
ORDER BY n.stream LIMIT :limit;

-- name: inspect_tag_epoch
-- gives: finding
SELECT '' AS subject, '' AS detail WHERE NOT EXISTS (SELECT 1 FROM tag_epoch);

-- name: inspect_tags
-- Without a join, which on PostgreSQL may read all events before the page.
-- takes: sequence int, part int, to int, limit int
-- gives: sequence int, part int, tags text, checksum int, kind int?
SELECT t.sequence, t.part, t.tags, t.checksum,
       (SELECT e.kind FROM events AS e WHERE e.sequence = t.sequence) AS kind
FROM event_tags AS t
WHERE (t.sequence, t.part) > (:sequence, :part) AND t.sequence <= :to
ORDER BY t.sequence, t.part LIMIT :limit;

-- name: inspect_tag_places
-- Entries of `wanted` that the index lacks; `wanted` is a JSON array of arrays of a tag, a sequence
-- and a kind. Returns the position, and the other kind if the index has one.
-- takes: wanted text
-- gives: at int, kind int?
SELECT j.key AS at, i.kind
FROM json_each(:wanted) AS j
     LEFT JOIN tag_index AS i ON i.tag = j.value ->> 0 AND i.sequence = j.value ->> 1
WHERE i.kind IS NOT j.value ->> 2 ORDER BY j.key;
-- engine: postgres
SELECT j.number - 1 AS at, i.kind
FROM jsonb_array_elements(:wanted::jsonb) WITH ORDINALITY AS j (entry, number)
     LEFT JOIN LATERAL (SELECT t.kind FROM tag_index AS t
                        WHERE t.tag = (j.entry ->> 0)::bigint
                          AND t.sequence = (j.entry ->> 1)::bigint LIMIT 1) AS i ON true
WHERE i.kind IS DISTINCT FROM (j.entry ->> 2)::integer ORDER BY j.number;

-- name: inspect_tag_index
-- takes: to int
-- gives: entries int
SELECT count(*) AS entries FROM tag_index WHERE sequence <= :to;

-- name: inspect_tag_entries
-- Each entry, with all tags of its event.
-- takes: tag int, sequence int, limit int
-- gives: tag int, sequence int, tags text
SELECT i.tag, i.sequence,
       (SELECT group_concat(t.tags, ' ') FROM event_tags AS t WHERE t.sequence = i.sequence)
         AS tags
FROM tag_index AS i
WHERE (i.tag, i.sequence) > (:tag, :sequence)
ORDER BY i.tag, i.sequence LIMIT :limit;
-- engine: postgres
SELECT i.tag, i.sequence,
       (SELECT string_agg(t.tags, ' ') FROM event_tags AS t WHERE t.sequence = i.sequence)
         AS tags
FROM tag_index AS i
WHERE (i.tag, i.sequence) > (:tag, :sequence)
ORDER BY i.tag, i.sequence LIMIT :limit;

-- name: inspect_untagged
-- Events that lack a tag which all events of their type have, unless the tag is their stream's
-- name.
-- takes: from int, to int
-- gives: sequence int, category text
SELECT e.sequence, f.category
FROM events AS e NOT INDEXED
     JOIN event_kinds AS k ON k.kind = e.kind
     JOIN tag_types AS f ON f.type = k.type
WHERE e.sequence BETWEEN :from AND :to
  AND f.always AND e.sequence >= f.since AND f.category <> k.category
  AND NOT EXISTS (SELECT 1 FROM event_tags AS t
                  WHERE t.sequence = e.sequence
                    AND instr(' ' || t.tags, ' ' || f.category || '-') > 0)
ORDER BY e.sequence, f.category;
