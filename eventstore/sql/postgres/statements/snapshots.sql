-- Snapshots of streams.

-- name: find_snapshot
-- doing: finding a snapshot
-- takes: stream text, to int, up_to int
-- gives: version int, sequence int, state_version int, taken_at int, checksum int, payload blob
SELECT n.version, n.sequence, n.state_version, n.taken_at, n.checksum, n.payload
FROM stela.snapshots AS n JOIN stela.streams AS s ON s.stream = n.stream
WHERE s.name = :stream AND n.version <= :to AND n.sequence <= :up_to;

-- name: save_snapshot
-- takes: stream text, version int, sequence int, state_version int, taken_at int, checksum int,
--        payload blob
INSERT INTO stela.snapshots AS n
  (stream, version, sequence, state_version, taken_at, checksum, payload)
SELECT s.stream, :version, :sequence, :state_version, :taken_at, :checksum, :payload
FROM stela.streams AS s WHERE s.name = :stream
ON CONFLICT (stream) DO UPDATE SET
  version = excluded.version, sequence = excluded.sequence,
  state_version = excluded.state_version, taken_at = excluded.taken_at,
  checksum = excluded.checksum, payload = excluded.payload
WHERE excluded.version >= n.version;

-- name: drop_snapshot
-- takes: stream text
DELETE FROM stela.snapshots
WHERE stream = (SELECT s.stream FROM stela.streams AS s WHERE s.name = :stream);
