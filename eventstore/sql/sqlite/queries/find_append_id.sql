SELECT first_sequence, last_sequence FROM append_ids WHERE append_id = ?1
