INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at)
VALUES (?1, ?2, ?3, ?4, ?5)
