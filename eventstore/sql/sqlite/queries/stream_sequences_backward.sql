SELECT version, sequence FROM events WHERE stream = ?1 AND version <= ?2
ORDER BY version DESC LIMIT ?3
