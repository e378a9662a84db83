INSERT INTO kind_blocks (kind, block) VALUES (?1, ?2) ON CONFLICT DO NOTHING
