-- Snapshots: the newest of each stream.

-- name: find_snapshot
-- takes: name text, to int, up_to int
-- gives: version int, sequence int, state_version int, taken_at time, checksum int, payload blob
SELECT version, sequence, state_version, taken_at, checksum, payload
FROM snapshots
WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = :name)
  AND version <= :to AND sequence <= :up_to;

-- name: save_snapshot
-- takes: name text, version int, sequence int, state_version int, taken_at time, checksum int,
--        payload blob
INSERT INTO snapshots (stream, version, sequence, state_version, taken_at, checksum, payload)
SELECT s.stream, :version, :sequence, :state_version, :taken_at, :checksum, :payload
FROM streams AS s WHERE s.name = :name
ON CONFLICT (stream) DO UPDATE
SET version = excluded.version, sequence = excluded.sequence,
    state_version = excluded.state_version, taken_at = excluded.taken_at,
    checksum = excluded.checksum, payload = excluded.payload
WHERE excluded.version >= snapshots.version;

-- name: drop_snapshot
-- takes: name text
DELETE FROM snapshots WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = :name);
