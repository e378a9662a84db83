-- The tags of events, and the types that carry them.

-- name: tags_of
-- doing: reading tags
-- takes: sequences int[]
-- gives: sequence int, part int, tags text, checksum int
SELECT sequence, part, tags, checksum FROM stela.event_tags WHERE sequence = ANY (:sequences)
ORDER BY sequence, part;

-- name: tag_types
-- doing: reading which types carry which tags
-- gives: type text, category text, always bool, several bool, since int
SELECT type, category, always, several, since FROM stela.tag_types ORDER BY type, category;

-- name: personal_types
-- doing: reading which types have personal fields
-- gives: type text
SELECT type FROM stela.stela_personal_types;

-- name: add_personal_type
-- doing: noting a type with personal fields
-- takes: type text
INSERT INTO stela.stela_personal_types (type) VALUES (:type) ON CONFLICT (type) DO NOTHING;

-- name: declare_tag
-- doing: noting the tags of a type
-- takes: type text, category text, always bool, several bool
SELECT stela.declare_tag(:type, :category, :always, :several);

-- name: lacks_tags
-- doing: looking for events without tags
-- takes: type text, category text, several bool
-- gives: lacks bool
SELECT stela.lacks_tags(:type, :category, :several) AS lacks;

-- name: standpoint
-- doing: reading the head
-- gives: head int, tag_epoch int
SELECT (SELECT coalesce(max(sequence), 0) FROM stela.events) AS head,
       (SELECT epoch FROM stela.tag_epoch) AS tag_epoch;

-- name: find_append_id
-- doing: looking up an append id
-- takes: append_id text
-- gives: first_sequence int, last_sequence int, checksum int
SELECT first_sequence, last_sequence, checksum FROM stela.append_ids WHERE append_id = :append_id;

-- name: next_tags
-- The hashes of the next tags, each with its first event, by one index lookup each.
-- doing: listing tags
-- takes: from int, limit int
-- gives: tag int, sequence int
WITH RECURSIVE next (tag, sequence) AS (
  (SELECT i.tag, i.sequence FROM stela.tag_index AS i WHERE i.tag >= :from
   ORDER BY i.tag, i.sequence LIMIT 1)
  UNION ALL
  SELECT n.tag, n.sequence FROM next AS l CROSS JOIN LATERAL
    (SELECT i.tag, i.sequence FROM stela.tag_index AS i WHERE i.tag > l.tag
     ORDER BY i.tag, i.sequence LIMIT 1) AS n)
SELECT tag, sequence FROM next LIMIT :limit;

-- name: has_tags
-- doing: looking for tags
SELECT FROM stela.event_tags LIMIT 1;

-- name: next_part
-- doing: adding tags
-- takes: sequence int
-- gives: part int
SELECT coalesce(max(part), -1) + 1 AS part FROM stela.event_tags WHERE sequence = :sequence;

-- name: add_part
-- doing: adding tags
-- takes: sequence int, part int, tags text, checksum int
INSERT INTO stela.event_tags (sequence, part, tags, checksum)
VALUES (:sequence, :part, :tags, :checksum);

-- name: index_tag
-- doing: adding tags
-- takes: tag int, sequence int
INSERT INTO stela.tag_index (tag, sequence, kind)
SELECT :tag, e.sequence, e.kind FROM stela.events AS e WHERE e.sequence = :sequence
ON CONFLICT DO NOTHING;

-- name: complete_tag_type
-- doing: completing tags
-- takes: type text, category text
UPDATE stela.tag_types SET since = 0 WHERE type = :type AND category = :category;

-- name: forget_tag_type
-- doing: forgetting tags
-- takes: type text, category text
DELETE FROM stela.tag_types WHERE type = :type AND category = :category;

-- name: change_tag_epoch
UPDATE stela.tag_epoch SET epoch = epoch + 1;
