INSERT INTO append_ids (append_id, first_sequence, last_sequence) VALUES (?1, ?2, ?3)
