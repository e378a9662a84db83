INSERT INTO snapshots (stream, version, sequence, state_version, taken_at, checksum, payload)
SELECT s.stream, ?2, ?3, ?4, ?5, ?6, ?7 FROM streams AS s WHERE s.name = ?1
ON CONFLICT (stream) DO UPDATE
SET version = excluded.version, sequence = excluded.sequence,
    state_version = excluded.state_version, taken_at = excluded.taken_at,
    checksum = excluded.checksum, payload = excluded.payload
WHERE excluded.version >= snapshots.version
