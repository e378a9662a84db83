SELECT name, value FROM stela_facts ORDER BY name
