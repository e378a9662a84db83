-- Data that moves with a store, beside its events.

-- name: save_append_ids
-- After `after`.
-- takes: after text, limit int
-- gives: append_id text, first_sequence int, last_sequence int, used_at time
SELECT append_id, first_sequence, last_sequence, used_at FROM append_ids
WHERE append_id > :after ORDER BY append_id LIMIT :limit;

-- name: load_append_id
-- takes: append_id text, first_sequence int, last_sequence int, checksum int, used_at time
INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at)
VALUES (:append_id, :first_sequence, :last_sequence, :checksum, :used_at)
ON CONFLICT (append_id) DO NOTHING;

-- name: store_id
-- gives: value text
SELECT value FROM stela_facts WHERE name = 'store_id';

-- name: set_store_id
-- takes: id text, checksum int
UPDATE stela_facts SET value = :id, checksum = :checksum WHERE name = 'store_id';
-- engine: postgres
UPDATE stela_facts SET value = :id WHERE name = 'store_id' AND :checksum = 0;
