-- Event kinds, and the blocks of sequences that contain them: event_kinds and kind_blocks.

-- name: event_kinds
-- takes: after int
-- gives: kind int, category text, type text, version int, publishes bool
SELECT kind, category, type, version, publishes FROM event_kinds WHERE kind > :after ORDER BY kind;

-- name: insert_event_kind
-- takes: kind int, category text, type text, version int, publishes bool
INSERT INTO event_kinds (kind, category, type, version, publishes)
VALUES (:kind, :category, :type, :version, :publishes);

-- name: kinds_matching
-- Categories and types are JSON arrays, or NULL for all.
-- takes: categories text?, types text?
-- gives: kind int
SELECT kind FROM event_kinds
WHERE (:categories IS NULL OR category IN (SELECT value FROM json_each(:categories)))
  AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)));

-- row: kind_block
-- gives: block int

-- name: kind_blocks
-- takes: kind int, from int, limit int
-- gives: kind_block
SELECT block FROM kind_blocks WHERE kind = :kind AND block >= :from ORDER BY block LIMIT :limit;

-- name: kind_blocks_backward
-- takes: kind int, from int, limit int
-- gives: kind_block
SELECT block FROM kind_blocks WHERE kind = :kind AND block <= :from
ORDER BY block DESC LIMIT :limit;

-- name: insert_kind_block
-- takes: kind int, block int
INSERT INTO kind_blocks (kind, block) VALUES (:kind, :block) ON CONFLICT DO NOTHING;
