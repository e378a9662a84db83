-- Imported events, with their streams, kinds and tags.

-- name: heads
-- The heads of existing streams.
-- doing: finding the streams of an import
-- takes: names text[]
-- gives: at int, stream int, version int, published int
SELECT n.at, t.stream, h.version,
       CASE WHEN k.publishes THEN h.version ELSE h.published_before END AS published
FROM unnest(:names) WITH ORDINALITY AS n(name, at)
JOIN stela.streams AS t ON t.name = n.name
JOIN LATERAL (SELECT e.version, e.published_before, e.kind FROM stela.events AS e
              WHERE e.stream = t.stream ORDER BY e.version DESC LIMIT 1) AS h ON true
LEFT JOIN stela.event_kinds AS k ON k.kind = h.kind
ORDER BY n.at;

-- name: insert_streams
-- doing: storing the streams of an import
-- takes: names text[]
-- gives: stream int
INSERT INTO stela.streams (stream, name)
SELECT (SELECT coalesce(max(t.stream), 0) FROM stela.streams AS t) + n.at, n.name
FROM unnest(:names) WITH ORDINALITY AS n(name, at) ORDER BY n.at RETURNING stream;

-- row: imported_kind
-- takes: category text, type text, version int4, publishes bool

-- name: insert_kinds
-- takes: kinds imported_kind[]
INSERT INTO stela.event_kinds (kind, category, type, version, publishes)
SELECT (SELECT coalesce(max(k.kind), 0) FROM stela.event_kinds AS k)
       + row_number() OVER (ORDER BY n.at), n.category, n.type, n.version, n.publishes
FROM unnest(:kinds) WITH ORDINALITY AS n(category, type, version, publishes, at)
WHERE NOT EXISTS (SELECT FROM stela.event_kinds AS k
                  WHERE k.category = n.category AND k.type = n.type AND k.version = n.version
                    AND k.publishes = n.publishes);

-- name: find_kinds
-- takes: kinds imported_kind[]
-- gives: kind int
SELECT k.kind FROM unnest(:kinds) WITH ORDINALITY AS n(category, type, version, publishes, at)
JOIN stela.event_kinds AS k ON k.category = n.category AND k.type = n.type
  AND k.version = n.version AND k.publishes = n.publishes
ORDER BY n.at;

-- row: imported_event
-- takes: sequence int, stream int, version int, recorded_at time, published_before int,
--        checksum int, kind int4, event_id uuid, causation_id uuid?, correlation_id text?,
--        metadata text?, payload blob

-- name: insert_events
-- doing: storing the events of an import
-- takes: events imported_event[]
INSERT INTO stela.events (sequence, stream, version, recorded_at, published_before, checksum, kind,
                          event_id, causation_id, correlation_id, metadata, payload)
SELECT * FROM unnest(:events);

-- row: imported_tags
-- takes: sequence int, tags text, checksum int

-- name: insert_tags
-- takes: tags imported_tags[]
INSERT INTO stela.event_tags (sequence, part, tags, checksum)
SELECT n.sequence, 0, n.tags, n.checksum FROM unnest(:tags) AS n(sequence, tags, checksum);

-- row: imported_entry
-- takes: tag int, sequence int, kind int4

-- name: insert_tag_entries
-- takes: entries imported_entry[]
INSERT INTO stela.tag_index (tag, sequence, kind)
SELECT * FROM unnest(:entries) ON CONFLICT DO NOTHING;

-- name: insert_tag_type
-- doing: noting the tags of a type
-- takes: type text, category text, always bool, several bool, since int
INSERT INTO stela.tag_types (type, category, always, several, since)
VALUES (:type, :category, :always, :several, :since);
