INSERT INTO inbox_positions (consumer, source, stream, version) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET version = max(version, excluded.version)
