SELECT append_id, first_sequence, last_sequence, checksum
FROM append_ids
WHERE append_id >= ?1
ORDER BY append_id LIMIT ?2
