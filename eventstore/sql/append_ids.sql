-- Ids that callers gave their appends.

-- name: find_append_id
-- takes: append_id text
-- gives: first_sequence int, last_sequence int, checksum int
SELECT first_sequence, last_sequence, checksum FROM append_ids WHERE append_id = :append_id;

-- name: insert_append_id
-- takes: append_id text, first_sequence int, last_sequence int, checksum int, used_at time
INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at)
VALUES (:append_id, :first_sequence, :last_sequence, :checksum, :used_at);

-- name: list_append_ids
-- After `after`. `last_use` of one from before the time of its use was noted is the time of its
-- events; it is NULL if there are none.
-- takes: after text, limit int
-- gives: append_id text, used_at time?, last_use time?
SELECT a.append_id, a.used_at, coalesce(a.used_at, e.recorded_at) AS last_use
FROM append_ids AS a LEFT JOIN events AS e ON e.sequence = a.first_sequence
WHERE a.append_id > :after
ORDER BY a.append_id LIMIT :limit;

-- name: delete_append_id
-- Unless it was used again since it was looked at.
-- takes: append_id text, used_at time?
DELETE FROM append_ids WHERE append_id = :append_id AND used_at IS :used_at;
