INSERT INTO stela_facts (name, value, checksum) VALUES (?1, ?2, ?3)
