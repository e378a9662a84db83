INSERT INTO projection_builds (name, last) VALUES (?1, 1)
ON CONFLICT (name) DO UPDATE SET last = last + 1
RETURNING last
