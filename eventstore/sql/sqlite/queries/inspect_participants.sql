SELECT name, detail, registered_at, checksum FROM stela_participants ORDER BY name
