INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum)
VALUES (?1, ?2, ?3, ?4)
