SELECT version, sequence, state_version, taken_at, checksum, payload
FROM snapshots
WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = ?1)
  AND version <= ?2 AND sequence <= ?3
