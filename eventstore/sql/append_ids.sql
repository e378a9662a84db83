-- Append ids of callers.

-- name: find_append_id
-- takes: append_id text
-- gives: first_sequence int, last_sequence int, checksum int
SELECT first_sequence, last_sequence, checksum FROM append_ids WHERE append_id = :append_id;

-- name: insert_append_id
-- takes: append_id text, first_sequence int, last_sequence int, checksum int, used_at time
INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at)
VALUES (:append_id, :first_sequence, :last_sequence, :checksum, :used_at);
