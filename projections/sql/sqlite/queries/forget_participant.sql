DELETE FROM stela_participants WHERE name = ?1
