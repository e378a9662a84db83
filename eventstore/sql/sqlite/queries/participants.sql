SELECT name, detail, registered_at FROM stela_participants ORDER BY name
