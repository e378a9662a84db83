INSERT INTO inbox_consumers (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING
