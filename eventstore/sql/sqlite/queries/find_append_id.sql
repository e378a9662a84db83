SELECT first_sequence, last_sequence, checksum FROM append_ids WHERE append_id = ?1
