SELECT name, value, checksum FROM stela_facts ORDER BY name
