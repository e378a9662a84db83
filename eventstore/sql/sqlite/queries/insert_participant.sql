INSERT INTO stela_participants (name, detail, registered_at) VALUES (?1, ?2, ?3)
