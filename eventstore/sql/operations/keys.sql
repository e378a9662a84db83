-- Forgotten keys of personal fields, and the key store with the other keys.

-- name: find_forgotten_key
-- takes: key_id blob
-- gives: sequence int
SELECT sequence FROM stela_forgotten_keys WHERE key_id = :key_id;

-- name: add_forgotten_key
-- takes: key_id blob, sequence int, forgotten_at time
INSERT INTO stela_forgotten_keys (key_id, sequence, forgotten_at)
VALUES (:key_id, :sequence, :forgotten_at) ON CONFLICT (key_id) DO NOTHING;

-- name: forgotten_keys
-- takes: after blob, limit int
-- gives: key_id blob
SELECT key_id FROM stela_forgotten_keys WHERE key_id > :after ORDER BY key_id LIMIT :limit;

-- name: key_store
-- gives: key_store blob, newest_key int, settled_as int
SELECT key_store, newest_key, settled_as FROM stela_key_store WHERE one = 1;

-- name: set_key_store
-- takes: key_store blob
INSERT INTO stela_key_store (one, key_store, newest_key, settled_as)
VALUES (1, :key_store, 0, -1)
ON CONFLICT (one) DO NOTHING;

-- name: unsettle
-- Sets a different number each time.
UPDATE stela_key_store SET settled_as = CASE WHEN settled_as < 0 THEN settled_as - 1 ELSE -1 END
WHERE one = 1;

-- name: note_settled
-- Unless a key was forgotten meanwhile.
-- takes: settled_as int, was int
UPDATE stela_key_store SET settled_as = :settled_as WHERE one = 1 AND settled_as = :was;

-- name: note_newest_key
-- takes: newest_key int
UPDATE stela_key_store SET newest_key = :newest_key WHERE one = 1 AND newest_key < :newest_key;

-- name: find_table
-- takes: name text
-- gives: found int
SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = :name;
-- engine: postgres
SELECT 1 AS found WHERE to_regclass(:name) IS NOT NULL;

-- name: personal_types
-- gives: type text
SELECT type FROM stela_personal_types;

-- name: add_personal_type
-- takes: type text
INSERT INTO stela_personal_types (type) VALUES (:type) ON CONFLICT (type) DO NOTHING;
