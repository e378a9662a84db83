SELECT name, detail FROM stela_participants ORDER BY name
