INSERT INTO outbox_messages (partition, sequence, position) VALUES (?1, ?2, ?3)
