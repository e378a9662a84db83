-- The bytes as the database holds them, whose order is that of the table.
SELECT append_id, first_sequence, last_sequence, checksum, CAST(append_id AS BLOB)
FROM append_ids
WHERE append_id >= ?1
ORDER BY append_id LIMIT ?2
