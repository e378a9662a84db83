INSERT INTO stela_participants (name, detail, registered_at, checksum) VALUES (?1, ?2, ?3, ?4)
