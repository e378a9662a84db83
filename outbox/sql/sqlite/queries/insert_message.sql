INSERT INTO outbox_messages (partition, sequence, stream, position) VALUES (?1, ?2, ?3, ?4)
