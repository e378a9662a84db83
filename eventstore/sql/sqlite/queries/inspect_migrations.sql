SELECT number, name, checksum FROM stela_migrations WHERE module = ?1 ORDER BY number
