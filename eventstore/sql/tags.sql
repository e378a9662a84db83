-- Tags: the events that have them, and the types that carry them.

-- name: insert_event_tags
-- takes: sequence int, part int, tags text, checksum int
INSERT INTO event_tags (sequence, part, tags, checksum)
VALUES (:sequence, :part, :tags, :checksum);

-- name: insert_tag
-- An event may have two tags with one hash.
-- takes: tag int, sequence int, kind int
INSERT INTO tag_index (tag, sequence, kind) VALUES (:tag, :sequence, :kind)
ON CONFLICT DO NOTHING;

-- name: tags_of_event
-- takes: sequence int
-- gives: part int, tags text, checksum int
SELECT part, tags, checksum FROM event_tags WHERE sequence = :sequence ORDER BY part;

-- name: tagged_event
-- An event with the tags that it was appended with. `has_more` tells that tags were added later.
-- takes: sequence int
-- gives: sequence int, stream int, version int, kind int, recorded_at time, event_id blob,
--        correlation_id text, causation_id blob, published_before int, metadata text, checksum int,
--        payload blob, tags text, tags_checksum int, has_more bool
SELECT e.sequence, e.stream, e.version, e.kind, e.recorded_at, e.event_id, e.correlation_id,
       e.causation_id, e.published_before, e.metadata, e.checksum, e.payload,
       t.tags, t.checksum AS tags_checksum,
       EXISTS (SELECT 1 FROM event_tags AS m WHERE m.sequence = e.sequence AND m.part > 0)
         AS has_more
FROM events AS e LEFT JOIN event_tags AS t ON t.sequence = e.sequence AND t.part = 0
WHERE e.sequence = :sequence;

-- name: has_tags
-- gives: found int
SELECT 1 AS found FROM event_tags LIMIT 1;

-- row: tag_place
-- gives: sequence int, kind int

-- name: tag_places
-- takes: tag int, from int, limit int
-- gives: tag_place
SELECT sequence, kind FROM tag_index WHERE tag = :tag AND sequence >= :from
ORDER BY sequence LIMIT :limit;

-- name: tag_places_backward
-- takes: tag int, from int, limit int
-- gives: tag_place
SELECT sequence, kind FROM tag_index WHERE tag = :tag AND sequence <= :from
ORDER BY sequence DESC LIMIT :limit;

-- name: stream_end
-- The last event of a stream.
-- takes: name text
-- gives: stream int, version int, sequence int
SELECT s.stream, e.version, e.sequence
FROM streams AS s JOIN events AS e ON e.stream = s.stream
WHERE s.name = :name
ORDER BY e.version DESC LIMIT 1;

-- name: sequence_of_version
-- takes: stream int, version int
-- gives: sequence int
SELECT sequence FROM events WHERE stream = :stream AND version = :version;

-- row: kind_place
-- gives: sequence int

-- name: kind_places
-- Events of these kinds, a JSON array, within one block.
-- takes: from int, to int, kinds text, limit int
-- gives: kind_place
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND kind IN (SELECT value FROM json_each(:kinds))
ORDER BY sequence LIMIT :limit;

-- name: kind_places_backward
-- takes: from int, to int, kinds text, limit int
-- gives: kind_place
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND kind IN (SELECT value FROM json_each(:kinds))
ORDER BY sequence DESC LIMIT :limit;

-- name: standpoint
-- gives: head int, epoch int
SELECT (SELECT coalesce(max(sequence), 0) FROM events) AS head,
       (SELECT epoch FROM tag_epoch) AS epoch;

-- name: tag_types
-- gives: type text, category text, always bool, several bool, since int, checksum int
SELECT type, category, always, several, since, checksum FROM tag_types ORDER BY type, category;

-- name: put_tag_type
-- takes: type text, category text, always bool, several bool, since int, checksum int
INSERT INTO tag_types (type, category, always, several, since, checksum)
VALUES (:type, :category, :always, :several, :since, :checksum)
ON CONFLICT (type, category) DO UPDATE
SET always = excluded.always, several = excluded.several, since = excluded.since,
    checksum = excluded.checksum;

-- name: complete_tag_type
-- takes: type text, category text, checksum int
UPDATE tag_types SET since = 0, checksum = :checksum WHERE type = :type AND category = :category;

-- name: delete_tag_type
-- takes: type text, category text
DELETE FROM tag_types WHERE type = :type AND category = :category;

-- name: raise_tag_epoch
UPDATE tag_epoch SET epoch = epoch + 1;

-- name: type_has_events
-- takes: type text
-- gives: found int
SELECT 1 AS found FROM event_kinds AS k JOIN kind_blocks AS b ON b.kind = k.kind
WHERE k.type = :type LIMIT 1;

-- name: kinds_outside
-- The type's kinds in streams of other categories.
-- takes: type text, category text
-- gives: kind int
SELECT kind FROM event_kinds WHERE type = :type AND category <> :category ORDER BY kind;

-- name: next_tag
-- The next tag by hash, and the first event that has it.
-- takes: from int
-- gives: tag int, sequence int
SELECT tag, sequence FROM tag_index WHERE tag >= :from ORDER BY tag, sequence LIMIT 1;
