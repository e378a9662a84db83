-- The rows of a key store.

-- name: key_store
-- Includes the key-encryption key that wraps its root.
-- gives: id blob, root blob, kek int, kek_wrapped blob, version int, erasures int
SELECT s.id, s.root, s.kek, k.wrapped AS kek_wrapped, s.version, s.erasures
FROM key_store AS s JOIN key_encryption_keys AS k ON k.number = s.kek WHERE s.one = 1;

-- name: insert_key_store
-- takes: id blob, root blob, kek int, made_at time
INSERT INTO key_store (one, id, root, kek, version, erasures, made_at)
VALUES (1, :id, :root, :kek, 1, 0, :made_at);

-- name: position
-- The newest key, and the key that now has the number of the newest one seen before.
-- takes: seen int
-- gives: id blob, version int, serves text?, highest int, newest blob?, seen_id blob?
SELECT id, version, serves, (SELECT coalesce(max(number), 0) FROM subject_keys) AS highest,
       (SELECT k.id FROM subject_keys AS k ORDER BY k.number DESC LIMIT 1) AS newest,
       (SELECT k.id FROM subject_keys AS k WHERE k.number = :seen) AS seen_id
FROM key_store WHERE one = 1;

-- name: set_serves
-- takes: serves text
UPDATE key_store SET serves = :serves WHERE one = 1;

-- name: note_erasures
-- takes: erasures int
UPDATE key_store SET version = version + 1, erasures = :erasures WHERE one = 1;

-- name: set_root
-- takes: root blob, kek int
UPDATE key_store SET version = version + 1, root = :root, kek = :kek WHERE one = 1;

-- name: newest_kek
-- gives: number int, wrapped blob, made_at time, has_older bool
SELECT number, wrapped, made_at, (SELECT count(*) FROM key_encryption_keys) > 1 AS has_older
FROM key_encryption_keys ORDER BY number DESC LIMIT 1;

-- name: insert_kek
-- takes: number int, wrapped blob, made_at time
INSERT INTO key_encryption_keys (number, wrapped, made_at) VALUES (:number, :wrapped, :made_at);

-- name: update_kek
-- takes: number int, wrapped blob
UPDATE key_encryption_keys SET wrapped = :wrapped WHERE number = :number;

-- name: delete_older_keks
-- takes: current int
DELETE FROM key_encryption_keys WHERE number < :current;

-- name: note_rotation
-- takes: number int, ended_at time
INSERT INTO key_rotations (number, began_at, ended_at)
SELECT number, made_at, :ended_at FROM key_encryption_keys WHERE number = :number
ON CONFLICT DO NOTHING;

-- name: first_rotation_after
-- takes: number int
-- gives: ended_at time
SELECT ended_at FROM key_rotations WHERE number > :number ORDER BY number LIMIT 1;

-- name: rotation
-- takes: number int
-- gives: ended_at time
SELECT ended_at FROM key_rotations WHERE number = :number;

-- row: key
-- gives: number int, id blob, binding blob, purpose text, generation int, subject blob?,
--   kek int?, wrapped blob?, kek_wrapped blob?, made_at time, allowed_at time?

-- name: find_key
-- takes: id blob
-- gives: key
SELECT s.number, s.id, s.binding, s.purpose, s.generation, s.subject, s.kek, s.wrapped,
       k.wrapped AS kek_wrapped, s.made_at, s.allowed_at
FROM subject_keys AS s LEFT JOIN key_encryption_keys AS k ON k.number = s.kek
WHERE s.id = :id;

-- name: keys_of
-- The keys of a subject, by purpose.
-- takes: binding blob, purpose text?
-- gives: key
SELECT s.number, s.id, s.binding, s.purpose, s.generation, s.subject, s.kek, s.wrapped,
       k.wrapped AS kek_wrapped, s.made_at, s.allowed_at
FROM subject_keys AS s LEFT JOIN key_encryption_keys AS k ON k.number = s.kek
WHERE s.binding = :binding AND s.purpose = coalesce(:purpose, s.purpose)
ORDER BY s.purpose, s.generation;

-- name: living_keys
-- Keys wrapped by a key-encryption key below this one.
-- takes: after int, below int, most int
-- gives: key
SELECT s.number, s.id, s.binding, s.purpose, s.generation, s.subject, s.kek, s.wrapped,
       k.wrapped AS kek_wrapped, s.made_at, s.allowed_at
FROM subject_keys AS s LEFT JOIN key_encryption_keys AS k ON k.number = s.kek
WHERE s.number > :after AND s.kek < :below ORDER BY s.number LIMIT :most;

-- name: insert_key
-- takes: id blob, binding blob, purpose text, generation int, subject blob, kek int, wrapped blob,
--   made_at time
-- gives: number int
INSERT INTO subject_keys (number, id, binding, purpose, generation, subject, kek, wrapped, made_at)
SELECT coalesce(max(number), 0) + 1, :id, :binding, :purpose, :generation, :subject, :kek,
       :wrapped, :made_at
FROM subject_keys RETURNING number;

-- name: rewrap_keys
-- The keys with these numbers ("4,7,9"), whose new texts are concatenated in the same order.
-- takes: numbers text, size int, kek int, wrapped blob
UPDATE subject_keys SET kek = :kek, wrapped = substr(:wrapped, json_each.key * :size + 1, :size)
FROM json_each('[' || :numbers || ']') WHERE subject_keys.number = json_each.value;
-- engine: postgres
UPDATE subject_keys SET kek = :kek,
  wrapped = substr(:wrapped, ((n.place - 1) * :size + 1)::int, :size::int)
FROM unnest(string_to_array(:numbers, ',')::bigint[]) WITH ORDINALITY AS n(number, place)
WHERE subject_keys.number = n.number;

-- name: destroy_key
-- takes: id blob, now time
UPDATE subject_keys SET subject = NULL, kek = NULL, wrapped = NULL, destroyed_at = :now,
  destroyed_by = (SELECT max(number) FROM key_encryption_keys)
WHERE id = :id AND destroyed_at IS NULL;

-- name: allow_subject
-- takes: binding blob, now time
UPDATE subject_keys SET allowed_at = :now
WHERE binding = :binding AND destroyed_at IS NOT NULL AND allowed_at IS NULL;

-- name: destroyed_keys
-- takes: after int, most int
-- gives: number int, id blob, purpose text, generation int, destroyed_at time, destroyed_by int
SELECT number, id, purpose, generation, destroyed_at, destroyed_by FROM subject_keys
WHERE number > :after AND destroyed_at IS NOT NULL ORDER BY number LIMIT :most;

-- name: destroyed_keys_of
-- takes: binding blob
-- gives: number int, id blob, purpose text, generation int, destroyed_at time, destroyed_by int
SELECT number, id, purpose, generation, destroyed_at, destroyed_by FROM subject_keys
WHERE binding = :binding AND destroyed_at IS NOT NULL ORDER BY purpose, generation;

-- name: hold_purpose
-- takes: binding blob, purpose text, until time?, reason text, now time
INSERT INTO holds (binding, purpose, until, reason, made_at)
VALUES (:binding, :purpose, :until, :reason, :now)
ON CONFLICT (binding, purpose) DO UPDATE
SET until = excluded.until, reason = excluded.reason, made_at = excluded.made_at;

-- name: release_purpose
-- takes: binding blob, purpose text
DELETE FROM holds WHERE binding = :binding AND purpose = :purpose;

-- name: holds_of
-- takes: binding blob, now time
-- gives: purpose text, until time?, reason text
SELECT purpose, until, reason FROM holds
WHERE binding = :binding AND (until IS NULL OR until > :now);
