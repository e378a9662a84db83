INSERT INTO projections (name, version, position) VALUES (?1, ?2, 0)
