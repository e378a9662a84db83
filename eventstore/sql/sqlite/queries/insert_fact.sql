INSERT INTO stela_facts (name, value) VALUES (?1, ?2)
